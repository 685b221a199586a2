package dataplane

import "testing"

func TestParseConnections(t *testing.T) {
	got, err := parseConnections("Active connections: 3 \nserver accepts handled requests\n 12 11 40 \nReading: 1 Writing: 2 Waiting: 0 \n")
	want := Connections{Accepted: 12, Handled: 11, Requests: 40, Active: 3, Reading: 1, Writing: 2}
	if err != nil || got != want {
		t.Errorf("%+v, %v: want %+v", got, err, want)
	}
	for _, page := range []string{"", "404 Not Found", "Active connections: -1 \nserver accepts handled requests\n 12 11 40 \nReading: 1 Writing: 2 Waiting: 0 \n"} {
		if got, err := parseConnections(page); err == nil || got != (Connections{}) {
			t.Errorf("%q: %+v, %v", page, got, err)
		}
	}
}

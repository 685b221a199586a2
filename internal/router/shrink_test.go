package router_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// shrink removes units, and parts of them, as long as the difference remains.
func shrink(units []unit.Unit, wrong func([]unit.Unit) bool) []unit.Unit {
	for {
		smaller := slices.IndexFunc(steps(units), wrong)
		if smaller < 0 {
			return units
		}
		units = steps(units)[smaller]
	}
}

// steps are all fixtures that are smaller by one part.
func steps(units []unit.Unit) [][]unit.Unit {
	var all [][]unit.Unit
	for i, u := range units {
		if u.Kind == unit.Globals {
			continue
		}
		all = append(all, slices.Delete(slices.Clone(units), i, i+1))
		for _, payload := range smallerPayloads(u.Payload) {
			fewer := slices.Clone(units)
			fewer[i].Payload, fewer[i].Version = payload, fmt.Sprintf("%x", payload)
			all = append(all, fewer)
		}
	}
	return all
}

// smallerPayloads lack one member of one of the payload's lists and objects.
func smallerPayloads(payload []byte) [][]byte {
	var unit map[string]any
	if json.Unmarshal(payload, &unit) != nil {
		return nil
	}
	var all [][]byte
	without := func(field string, value any) {
		was := unit[field]
		unit[field] = value
		text, err := json.Marshal(unit)
		if err != nil {
			panic(err)
		}
		all = append(all, text)
		unit[field] = was
	}
	for _, field := range []string{"routes", "regexes"} {
		if list, ok := unit[field].([]any); ok {
			for i := range list {
				without(field, slices.Delete(slices.Clone(list), i, i+1))
			}
		}
	}
	for _, field := range []string{"leading_wildcards", "trailing_wildcards"} {
		if object, ok := unit[field].(map[string]any); ok {
			for name := range object {
				rest := map[string]any{}
				for other, value := range object {
					if other != name {
						rest[other] = value
					}
				}
				without(field, rest)
			}
		}
	}
	return all
}

func show(units []unit.Unit) string {
	var text strings.Builder
	for _, u := range units {
		fmt.Fprintf(&text, "  %s %q %s\n", u.Kind, u.Name, u.Payload)
	}
	return text.String()
}

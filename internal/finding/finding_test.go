package finding_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/finding"
)

func TestLimit(t *testing.T) {
	var fs []finding.Finding
	add := func(object string, code finding.Code, n int) {
		for i := range n {
			f := finding.Finding{Object: object, Field: fmt.Sprintf("field %03d", i), Code: code}
			fs = append(fs, f, f)
		}
	}
	add("ingress/a/one", finding.Conflict, 70)
	add("ingress/a/one", finding.InvalidValue, 50)
	add("ingress/a/two", finding.Conflict, 3)
	slices.Reverse(fs)
	limited := finding.Limit(fs)
	if len(limited) != 51+50+3 || !slices.Equal(limited, finding.Sort(slices.Clone(limited))) {
		t.Fatalf("%d findings, or not sorted", len(limited))
	}
	more := slices.DeleteFunc(slices.Clone(limited), func(f finding.Finding) bool { return f.Field != "" })
	if len(more) != 1 || more[0].Object != "ingress/a/one" || more[0].Code != finding.Conflict || more[0].Message != "… and 20 more" {
		t.Errorf("the rest is %v", more)
	}
	if slices.ContainsFunc(limited, func(f finding.Finding) bool { return f.Code == finding.Conflict && f.Field == "field 050" }) {
		t.Error("not the first ones were kept")
	}
}

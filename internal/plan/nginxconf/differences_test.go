package nginxconf_test

import (
	"strings"
	"testing"
)

// differences are the lines that turn one configuration into another, below the
// blocks in which they stand. There are no line numbers: a new directive would
// change those of all that follow.
func differences(from, to string) string {
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	var in blocks
	behind := false // whether the line before differed as well
	write := func(mark, line string) {
		in.enter(line)
		if !behind {
			out.WriteString("@@ " + in.String() + "\n")
		}
		behind = true
		in.open(line)
		out.WriteString(mark + line + "\n")
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			behind = false
			in.enter(a[i])
			in.open(a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			write("-", a[i])
			i++
		default:
			write("+", b[j])
			j++
		}
	}
	return out.String()
}

// blocks are the lines that open the blocks around a line, outermost first.
type blocks []string

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// enter leaves the blocks that a line is not in, by how far they are indented.
func (b *blocks) enter(line string) {
	for line != "" && len(*b) > 0 && indent((*b)[len(*b)-1]) >= indent(line) {
		*b = (*b)[:len(*b)-1]
	}
}

func (b *blocks) open(line string) {
	if strings.HasSuffix(line, "{") {
		*b = append(*b, line)
	}
}

func (b blocks) String() string {
	text := "nginx.conf"
	for _, line := range b {
		text += " > " + strings.Trim(line, " {")
	}
	return text
}

func TestDifferences(t *testing.T) {
	const from = "user a;\nhttp {\n    server {\n        listen 80;\n        listen 81;\n    }\n    x on;\n}\n"
	const to = "user a;\nhttp {\n    server {\n        listen 80;\n        listen 82;\n    }\n    x on;\n    y on;\n}\n"
	const want = "@@ nginx.conf > http > server\n-        listen 81;\n+        listen 82;\n@@ nginx.conf > http\n+    y on;\n"
	if got := differences(from, to); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := differences(from, from); got != "" {
		t.Errorf("no differences are\n%s", got)
	}
}

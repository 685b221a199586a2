// Package nearest finds the name that a misspelt one is most like.
//
// It must not know what the names are of.
package nearest

// maxLength bounds the names that are compared: tenants may write longer ones.
const maxLength = 64

// Name is the candidate that a name is most like, empty if it is like none.
func Name(name string, candidates []string) string {
	if len(name) > maxLength {
		return ""
	}
	best, least := "", 1+min(3, len(name)/3)
	for _, candidate := range candidates {
		if d := editDistance(name, candidate, least); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance is how many bytes have to be added, left out, changed or swapped
// with the next one to make one text of the other, or limit if that is less.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	last, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], last[j-2]+1)
			}
		}
		last, row, next = row, next, last
	}
	return min(row[len(b)], limit)
}

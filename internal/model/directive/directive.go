// Package directive declares the settings of a profile: NGINX's directive that
// each becomes, which value is stricter than another, and how far two are apart.
//
// A value is a number, or a list of numbers. It is printed as digits, units and words of
// the declaration: no text of a tenant reaches nginx.conf.
package directive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A Directive is one setting.
type Directive struct {
	// Name is NGINX's, without the protocol's prefix ("proxy_") unless Plain is
	// set. It names the value in profiles.
	Name  string
	Plain bool
	// Only lists the protocols that have the directive; empty for all.
	Only []model.Protocol
	Kind Kind
	// Words are what the bits of a Set or the numbers of a Choice are called.
	Words []string
	// Lacks are bits of a Set that a protocol's directive has no words for. They are
	// left out.
	Lacks map[model.Protocol]int64
	// TLS means that the directive decides how a TLS connection to a backend is made, or
	// with whom. Only profiles with TLS have it, a value of 0 leaves it out, and profiles
	// with different values share no connections, see Identity.
	TLS bool
	// Variable names the variable that a directive of the kind Variable reads.
	Variable string
	// Times names the directive whose value, a size, is printed behind the
	// number.
	Times string
	// Absolute is for a directive of the kind File whose module takes names relative to
	// the directory of the process, and not to that of nginx.conf; see In.
	Absolute bool
	folder   string
	// zones are those that a limit may name; nil for any. See Having.
	zones *Zones
	// Yields leaves it out where lines of the administrator's in the location have it: NGINX takes it
	// once. given are these lines; see Beside.
	Yields bool
	given  Given
	// As is what NGINX calls the directive, if several of one name are declared.
	As string
	// Omits means that a value of 0 leaves the directive out.
	Omits bool
	// Shared means that the http block has the directive, once for each value that a
	// profile has, and the profile's locations inherit it.
	Shared bool
	// Most is how many different values profiles may have, without 0 and the empty text;
	// 0 for no bound.
	Most int
	// InMost is how many profiles may have such a value, since each takes memory for it;
	// 0 for no bound.
	InMost int

	Order Order
	// Strictest is the value in the strictest profile; nil leaves the value.
	Strictest *int64
	// Unlimited means that 0 stands for unlimited.
	Unlimited bool
	// Loses means that a value that is too small loses responses: it counts as further
	// away than one that is too large.
	Loses bool
	// Samples are values that a test has NGINX read.
	Samples []int64
}

// A Kind says how a value is printed.
type Kind int

// The kinds.
const (
	// OnOff is "on" for 1 and "off" for 0.
	OnOff Kind = iota
	// Size is bytes in the largest unit that gives a whole number.
	Size
	// Memory is the same for directives that take no g.
	Memory
	// Count is the number.
	Count
	// Seconds is a time.
	Seconds
	// Set is words for the bits that are set, "off" without any.
	Set
	// Choice is the word of that number.
	Choice
	// Statuses are those of responses, of the backend or of NGINX, that go to the phase
	// error_page; see Catch.
	Statuses
	// OwnStatuses are the same of NGINX alone: those of the backend reach clients.
	OwnStatuses
	// File is a file that plan writes beside nginx.conf; see Contains.
	File
	// Ordered is words in an order of their own, with colons between them; see InOrder.
	Ordered
	// Listed is words of the declaration with spaces between them; see Listing.
	Listed
	// RequestLimit is the parameters of limit_req, with a zone that the administrator defines;
	// see LimitsRequests. ConnectionLimit is those of limit_conn.
	RequestLimit
	ConnectionLimit
	// Variable is the variable's name. What it holds, Lua sets for each request; the
	// profile has a digest of that, so that routes with different values have different
	// profiles; see Holds.
	Variable
)

// Files is the folder of such files in the run directory. Each has the name of its content.
const Files = "files"

// An Order says which values may replace the requested one.
type Order int

// The orders. The default is Same, since access may depend on the value.
const (
	// Same allows no other value.
	Same Order = iota
	// Any allows all values: they change no response.
	Any
	// AtMost allows values that are not larger. With Unlimited, 0 is the largest.
	AtMost
	// Within allows subsets.
	Within
)

// To is the value as a profile has it.
func (d Directive) To(number int64) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Number: number}
}

// Catchable reports whether NGINX can replace responses of that status. Those of 408, 444
// and 499 end the client's connection, and those of 494 to 497 become 400.
func Catchable(status int) bool {
	return status >= 300 && status <= 599 && status != 408 && status != 444 && status != 499 && (status < 494 || status > 497)
}

// Catch is the value of a directive of the kinds Statuses and OwnStatuses. All must be catchable.
func (d Directive) Catch(statuses []int) model.ProfileValue {
	var words []string
	for _, status := range slices.Compact(slices.Sorted(slices.Values(statuses))) {
		if !Catchable(status) {
			panic(fmt.Sprintf("directive: NGINX can't catch %d", status))
		}
		words = append(words, strconv.Itoa(status))
	}
	return model.ProfileValue{Name: d.Name, Text: strings.Join(words, ",")}
}

// Contains is the value of a directive of the kind File. The route must have the content in
// its Files.
func (d Directive) Contains(c model.Content) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Text: c.Name}
}

// InOrder is the value of a directive of the kind Ordered: the indexes of its words.
func (d Directive) InOrder(words []int) model.ProfileValue {
	indexes := make([]string, len(words))
	for i, word := range words {
		indexes[i] = strconv.Itoa(word)
	}
	return model.ProfileValue{Name: d.Name, Text: strings.Join(indexes, ",")}
}

// Listing is the value of a directive of the kind Listed: words of the declaration, in any
// order.
func (d Directive) Listing(words []string) model.ProfileValue {
	var indexes []int
	for _, word := range words {
		i := slices.Index(d.Words, word)
		if i < 0 {
			panic("directive: " + d.Name + " has no word " + word)
		}
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	return d.InOrder(slices.Compact(indexes))
}

// Holds is the value of a directive of the kind Variable whose variable has that value. An
// empty one leaves the directive out.
func (d Directive) Holds(value string) model.ProfileValue {
	if value == "" {
		return model.ProfileValue{Name: d.Name}
	}
	sum := sha256.Sum256([]byte(value))
	return model.ProfileValue{Name: d.Name, Text: hex.EncodeToString(sum[:])}
}

// When is 1 or 0, for OnOff and for a Choice between two.
func (d Directive) When(on bool) model.ProfileValue {
	if on {
		return d.To(1)
	}
	return d.To(0)
}

// Of is a profile's value.
func (d Directive) Of(p model.Profile) int64 { return p.Value(d.Name) }

// Number is for Strictest.
func Number(n int64) *int64 { return &n }

func (d Directive) standsIn(v, asked model.ProfileValue) bool {
	switch d.Order {
	case Any:
		return true
	case AtMost:
		return d.limit(v.Number) <= d.limit(asked.Number)
	case Within:
		return v.Number&^asked.Number == 0 && without(v, asked) == 0
	}
	return v == asked
}

// without is how many of a list's members another one lacks.
func without(v, other model.ProfileValue) int64 {
	var n int64
	members := strings.Split(other.Text, ",")
	for member := range strings.SplitSeq(v.Text, ",") {
		if member != "" && !slices.Contains(members, member) {
			n++
		}
	}
	return n
}

// limit is the value, or a very large one for unlimited.
func (d Directive) limit(n int64) int64 {
	if d.Unlimited && n == 0 {
		return 1 << 62
	}
	return n
}

// Distances: of one doubling of a size or one member of a set, and of a switch.
const (
	doubled = 1024
	toggled = 8 * doubled
)

func (d Directive) distance(v, asked model.ProfileValue) int64 {
	switch {
	case v == asked:
		return 0
	case d.Kind == OnOff || d.Kind == Choice || d.Kind.isText() && !d.Kind.isStatuses():
		return toggled
	case d.Kind == Set:
		return doubled * int64(bits.OnesCount64(uint64(v.Number^asked.Number)))
	case d.Kind.isStatuses():
		return doubled * (without(v, asked) + without(asked, v))
	}
	apart := doublings(d.limit(v.Number), d.limit(asked.Number))
	if d.Loses && v.Number < asked.Number {
		apart *= 9
	}
	return apart
}

// doublings is the logarithm of the ratio, straight between powers of two, and
// 0 for equal sizes alone.
func doublings(a, b int64) int64 {
	small, large := max(1, min(a, b)), max(1, a, b)
	if small == large {
		return min(1, a^b)
	}
	whole := bits.Len64(uint64(large/small)) - 1
	part := ((large >> whole) - small) * doubled / small
	return max(1, int64(whole)*doubled+part)
}

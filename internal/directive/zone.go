package directive

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A Zone is the name of shared memory that the administrator's text defines: letters, digits
// and underscores.
type Zone string

// LimitsRequests is the value of a directive of the kind RequestLimit: how many requests beyond
// the rate may come at once, and how many of these don't wait.
func (d Directive) LimitsRequests(zone Zone, burst, delay int) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Text: fmt.Sprintf("%s,%d,%d", encodeZone(zone), burst, min(burst, delay))}
}

// LimitsConnections is the value of a directive of the kind ConnectionLimit.
func (d Directive) LimitsConnections(zone Zone, most int) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Text: fmt.Sprintf("%s,%d", encodeZone(zone), most)}
}

var zoneForm = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)

// encodeZone writes a name in the few characters that a profile may have.
func encodeZone(zone Zone) string {
	if !zoneForm.MatchString(string(zone)) {
		panic(fmt.Sprintf("directive: a zone of the name %q", zone))
	}
	return hex.EncodeToString([]byte(zone))
}

// limitText is the parameters of a limit, empty if there is none.
func (d Directive) limitText(text string) string {
	if text == "" {
		return ""
	}
	fields := strings.Split(text, ",")
	zone, err := hex.DecodeString(fields[0])
	if err != nil || !zoneForm.Match(zone) {
		panic("directive: " + d.Name + " with the value " + text)
	}
	if d.Kind == ConnectionLimit {
		return string(zone) + " " + fields[1]
	}
	parameters := "zone=" + string(zone)
	if fields[1] != "0" {
		parameters += " burst=" + fields[1]
	}
	switch fields[2] {
	case "0":
	case fields[1]:
		parameters += " nodelay"
	default:
		parameters += " delay=" + fields[2]
	}
	return parameters
}

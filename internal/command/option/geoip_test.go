package option

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestGeoIPFlags: editions and mirrors that can't be right are refused. A mirror may have a password, which is not said.
func TestGeoIPFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"":                             "",
		"--maxmind-edition-ids=":       "",
		"--maxmind-license-key=secret": "",
		"--maxmind-edition-ids=GeoIP2-City,GeoIP2-ISP,GeoIP2-Domain,GeoIP2-Anonymous-IP,GeoIP2-Connection-Type,GeoLite2-Country": "",
		"--maxmind-edition-ids=GeoLite2-City,GeoLite2-Town":                                                                      `invalid value "GeoLite2-Town" of --maxmind-edition-ids: must be some of GeoIP2-Domain, `,
		"--maxmind-edition-ids=../../x":         `invalid value "../../x"`,
		"--maxmind-mirror=https://m.test/geoip": "",
		"--maxmind-mirror=user:secret@m.test":   "invalid value of --maxmind-mirror: must be a URL",
		"--maxmind-retries-timeout=-1s":         `invalid value "-1s" of --maxmind-retries-timeout: must be 0s or more`,
	} {
		var o GeoIP
		f := pflag.NewFlagSet("headgate", pflag.ContinueOnError)
		o.addGeoIPFlags(f)
		if err := f.Parse(strings.Fields(flags)); err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		err := o.checkGeoIP()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: the error is %v, want %q", flags, err, want)
		}
	}
}

package option

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/model/geo"
	"github.com/headgate/headgate/internal/source/geodb"
)

// GeoIP are the flags of GeoIP databases.
type GeoIP struct {
	geoIPDir     string
	editions     string
	licenseKey   string
	mirror       string
	retriesCount int
	retriesPause time.Duration
}

func (o *GeoIP) addGeoIPFlags(f *pflag.FlagSet) {
	f.StringVar(&o.geoIPDir, "geoip-dir", "/etc/ingress-controller/geoip", "folder of GeoIP databases, EDITION.mmdb, for the ConfigMap key use-geoip2; it is watched for changes")
	f.StringVar(&o.editions, "maxmind-edition-ids", "GeoLite2-City,GeoLite2-ASN", "editions of GeoIP databases to read, and to download with --maxmind-license-key or --maxmind-mirror, separated by commas")
	f.StringVar(&o.licenseKey, "maxmind-license-key", "", "license key of MaxMind, with which GeoIP databases are downloaded at the start, if the ConfigMap key use-geoip2 is true")
	f.StringVar(&o.mirror, "maxmind-mirror", "", "URL of a mirror that GeoIP databases are downloaded from instead, as URL/EDITION.tar.gz")
	f.IntVar(&o.retriesCount, "maxmind-retries-count", 1, "number of attempts to download a GeoIP database")
	f.DurationVar(&o.retriesPause, "maxmind-retries-timeout", 0, "pause after the first attempt that failed to download a GeoIP database; each later one is half as long again. With 0s there is one attempt")
}

// domains is an edition that ingress-nginx takes, and has no variables of.
const domains = "GeoIP2-Domain"

// checkGeoIP rejects editions that do not exist, and mirrors that can't be right.
func (o *GeoIP) checkGeoIP() error {
	known := []string{domains}
	for _, edition := range geo.Editions() {
		known = append(known, edition.String())
	}
	for _, edition := range o.editionList() {
		if !slices.Contains(known, edition) {
			return usage.InvalidValue(edition, "maxmind-edition-ids", "some of "+strings.Join(known, ", "))
		}
	}
	if o.mirror != "" {
		if u, err := url.Parse(o.mirror); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("invalid value of --maxmind-mirror: must be a URL that begins with https:// or http://")
		}
	}
	if o.retriesPause < 0 {
		return usage.InvalidValue(o.retriesPause, "maxmind-retries-timeout", "0s or more")
	}
	return nil
}

func (o *GeoIP) editionList() []string {
	return strings.FieldsFunc(o.editions, func(r rune) bool { return r == ',' || r == ' ' })
}

// GeoDatabases are the databases to follow, without copies and log.
func (o *GeoIP) GeoDatabases() geodb.Settings {
	return geodb.Settings{
		Path:     o.geoIPDir,
		Editions: slices.DeleteFunc(o.editionList(), func(edition string) bool { return edition == domains }),
		Download: geodb.Download{LicenseKey: o.licenseKey, Mirror: o.mirror, Attempts: o.retriesCount, Pause: o.retriesPause},
	}
}

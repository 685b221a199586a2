package geoip_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/syntax/template"
	"github.com/headgate/headgate/internal/test/geodbtest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// headers are for backends: a name and a variable each.
var headers = []string{
	"X-City: $geoip2_city", "X-Country: $geoip2_city_country_code", "X-Region: $geoip2_region_name/$geoip2_subregion_code", "X-At: $geoip2_latitude $geoip2_longitude $geoip2_time_zone",
	"X-Ids: $geoip2_city_geoname_id,$geoip2_dma_code,$geoip2_postal_code,$geoip2_city_continent_code", "X-Asn: $geoip2_asn $geoip2_org", "X-Vpn: $geoip2_is_anon$geoip2_is_anonymous_vpn$geoip2_is_tor_exit_node",
	"X-Isp: ($geoip2_isp)",
}

type instance struct {
	*headgatetest.Instance
	t      *testing.T
	folder string
}

func start(t *testing.T, timing *edge.Timing, keys ...string) *instance {
	t.Helper()
	// Workers write the log there.
	folder, err := os.MkdirTemp("", "hg-geoip-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	g := headgatetest.Start(t, headgatetest.Options{
		Timing: timing, GeoDatabases: folder, AccessLog: filepath.Join(folder, "log"),
		Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "a.test", "/", "a") +
			headgatetest.ConfigMap("headers", headers...) + config(keys...),
	})
	return &instance{g, t, folder}
}

func config(keys ...string) string {
	return headgatetest.Config(append([]string{"proxy-set-headers: default/headers"}, keys...)...)
}

// put puts a file into its place, as a whole.
func (g *instance) put(edition string, content []byte) {
	g.t.Helper()
	name := filepath.Join(g.folder, edition+".mmdb")
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		g.t.Fatal(err)
	}
}

// got is a header that the backend gets.
func (g *instance) got(name string) string {
	g.t.Helper()
	r := g.Get("a.test", "/").WantStatus(g.t, 200)
	return r.Echo.Header.Get(name)
}

func (g *instance) await(name, want string) {
	g.t.Helper()
	headgatetest.Eventually(g.t, name+" is "+want, func() bool { return g.got(name) == want })
	// For a moment, old workers answer beside the new ones.
	g.WaitSynced()
}

// says is how many findings had a text and an effect.
func (g *instance) says(text, effect string) int {
	n := 0
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, text) && strings.Contains(line, effect) {
			n++
		}
	}
	return n
}

// load asks all the time over connections that are kept, until stop is called, which returns the number of requests.
func (g *instance) load() (stop func() int64) {
	var asked atomic.Int64
	var group sync.WaitGroup
	ended := make(chan struct{})
	for i := range 4 {
		client := g.NewClient(i%2 == 0)
		by := headgatetest.Request{Host: "a.test", Scheme: map[bool]string{true: "https", false: "http"}[i%2 == 0], HTTP2: i%2 == 0}
		group.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-ended:
					return
				default:
				}
				// It is not repeated by the client, unlike GET.
				by.Method, by.Body = http.MethodPost, strings.NewReader("x")
				r, err := g.Try(client, by)
				if asked.Add(1); err != nil || r.Status != 200 || r.Echo.Header.Get("X-City") == "" {
					g.t.Errorf("HTTP/2 %v: %v, %d %.100s", by.HTTP2, err, r.Status, r.Body)
				}
			}
		})
	}
	return func() int64 {
		close(ended)
		group.Wait()
		return asked.Load()
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Hasty(), "use-geoip2: true", `log-format-upstream: log $geoip2_city_country_name|$geoip2_org|$geoip2_isp|$status`)
	if city := g.got("X-City"); city != "" {
		t.Errorf("without a database: %q", city)
	}
	headgatetest.Eventually(t, "it is said what is missing", func() bool {
		return g.says("GeoLite2-City: "+filepath.Join(g.folder, "GeoLite2-City.mmdb")+" does not exist", "its variables are empty") == 1
	})
	g.put("GeoLite2-City", geodbtest.City(t, "Wellington"))
	g.put("GeoLite2-ASN", geodbtest.ASN(t, "Example"))
	g.put("GeoIP2-Anonymous-IP", geodbtest.Anonymous(t))
	g.await("X-City", "Wellington")
	g.await("X-Asn", "64496 Example")
	g.await("X-Vpn", "110")
	for name, want := range map[string]string{"X-Country": "NZ", "X-Region": "Wellington/X", "X-At": "-41.50000 174.25000 Pacific/Auckland", "X-Ids": "7,9,6011,OC", "X-Isp": "()"} {
		if got := g.got(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	headgatetest.Eventually(t, "the access log has it", func() bool {
		g.got("X-City")
		log, err := os.ReadFile(filepath.Join(g.folder, "log"))
		return err == nil && strings.Contains(string(log), "log New Zealand|Example||200\n")
	})
	g.ApplyReloading(config())
	if city := g.got("X-City"); city != "" {
		t.Errorf("without the key: %q", city)
	}
}

// The address is the one that Headgate takes the client's for.
func TestAddress(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Hasty(), "use-geoip2: true", "use-http3: true", "use-forwarded-headers: true", "proxy-real-ip-cidr: 127.0.0.0/8")
	g.put("GeoLite2-City", geodbtest.City(t, "Wellington"))
	g.await("X-Country", "NZ")
	for address, want := range map[string]string{"2001:db8::1": "NO", "192.0.2.1": "", "127.0.0.9": "NZ", "nonsense": "NZ"} {
		for _, by := range g.Protocols() {
			by.Host, by.Header = "a.test", http.Header{"X-Forwarded-For": {address}}
			if got := g.Do(by).WantStatus(t, 200).Echo.Header.Get("X-Country"); got != want {
				t.Errorf("%s by %+v: %q, want %q", address, by, got, want)
			}
		}
	}
}

// Databases are replaced, truncated and removed under load, as files and as a mounted ConfigMap, whose symbolic link
// turns: what NGINX has is always a good one, and no request fails.
func TestDatabasesChange(t *testing.T) {
	t.Parallel()
	timing := headgatetest.Hasty()
	timing.Drain = edge.DefaultTiming().Drain
	g := start(t, timing, "use-geoip2: true")
	g.put("GeoLite2-City", geodbtest.City(t, "first"))
	g.await("X-City", "first")
	stop := g.load()
	name := filepath.Join(g.folder, "GeoLite2-City.mmdb")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string, times int) {
		t.Helper()
		headgatetest.Eventually(t, text, func() bool { return g.says(text, "the last good database is used") == times })
	}
	g.put("GeoLite2-City", geodbtest.City(t, "second"))
	g.await("X-City", "second")
	whole := geodbtest.City(t, "third")
	must(os.Truncate(name, 100))
	said("is not a database that can be used", 1)
	must(os.WriteFile(name, whole, 0o600)) // in the same file
	g.await("X-City", "third")
	must(os.Remove(name))
	said("GeoLite2-City.mmdb does not exist", 1)
	damaged := append([]byte{}, geodbtest.City(t, "fourth")...)
	for i := 0; i < len(damaged)/2; i++ {
		damaged[i] ^= 0xff
	}
	g.put("GeoLite2-City", damaged)
	said("is not a database that can be used", 2)
	must(os.Remove(name))
	said("GeoLite2-City.mmdb does not exist", 2)
	for version, city := range map[string]string{"..1": "fifth", "..2": "sixth"} {
		must(os.Mkdir(filepath.Join(g.folder, version), 0o700))
		must(os.WriteFile(filepath.Join(g.folder, version, "GeoLite2-City.mmdb"), geodbtest.City(t, city), 0o600))
	}
	turn := func(version string) {
		t.Helper()
		must(os.Symlink(version, filepath.Join(g.folder, "..new")))
		must(os.Rename(filepath.Join(g.folder, "..new"), filepath.Join(g.folder, "..data")))
	}
	turn("..1")
	must(os.Symlink("..data/GeoLite2-City.mmdb", name))
	g.await("X-City", "fifth")
	turn("..2")
	g.await("X-City", "sixth")
	must(os.RemoveAll(filepath.Join(g.folder, "..2")))
	said("GeoLite2-City.mmdb does not exist", 3)
	g.WaitSynced()
	t.Logf("%d requests", stop())
	if n := g.Value(g.Metrics.ReloadFailures); n > 0 {
		t.Errorf("%v reloads failed", n)
	}
	if city := g.got("X-City"); city != "sixth" {
		t.Errorf("at the end: %q", city)
	}
}

// With geoip2-autoreload-in-minutes, NGINX itself finds a new database, and is not reloaded. A minute is long for a test:
// nginx.conf gets a second.
func TestRereads(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Hasty(), "use-geoip2: true", "geoip2-autoreload-in-minutes: 1")
	g.put("GeoLite2-City", geodbtest.City(t, "first"))
	g.await("X-City", "first")
	conf, err := os.ReadFile(g.RunDir.Conf())
	if err != nil {
		t.Fatal(err)
	}
	hasty := strings.ReplaceAll(string(conf), "auto_reload 60s;", "auto_reload 1s;")
	if hasty == string(conf) {
		t.Fatalf("nginx.conf does not have it:\n%s", conf)
	}
	if err := g.RunDir.Write(map[string][]byte{"nginx.conf": []byte(hasty)}); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(g.RunDir.Path(), "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err == nil {
		err = syscall.Kill(number, syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := g.Value(g.Metrics.Reloads)
	for _, city := range []string{"second", "third"} {
		g.put("GeoLite2-City", geodbtest.City(t, city))
		// Each worker finds it by itself.
		seen := 0
		headgatetest.Eventually(t, "both workers have "+city, func() bool {
			if seen++; g.got("X-City") != city {
				seen = 0
			}
			return seen > 50
		})
	}
	if n := g.Value(g.Metrics.Reloads); n != before {
		t.Errorf("%v reloads", n-before)
	}
}

// Values can have the variables of editions alone.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"$geoip2_city": true, "$geoip2_town": false} {
		_, err := template.Parse(name, false)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

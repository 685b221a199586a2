package affinity_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// arcs returns the shares of the ring that belong to endpoints, by which the keys of new sessions
// fall in balanced mode.
func arcs(endpoints []string) map[string]float64 {
	type point struct {
		hash     uint32
		endpoint string
	}
	var points []point
	for _, endpoint := range endpoints {
		base, hash := crc32.ChecksumIEEE([]byte(endpoint)), uint32(0)
		for range 160 {
			hash = crc32.Update(base, crc32.IEEETable, []byte{byte(hash), byte(hash >> 8), byte(hash >> 16), byte(hash >> 24)})
			points = append(points, point{hash, endpoint})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(int64(a.hash) - int64(b.hash)) })
	shares := map[string]float64{}
	for i, p := range points {
		// An unsigned difference goes around the circle.
		shares[p.endpoint] += float64(p.hash-points[(i+len(points)-1)%len(points)].hash) / (1 << 32)
	}
	return shares
}

// New sessions are spread evenly over the endpoints in persistent mode, and as the ring is divided
// in balanced mode, within six standard deviations, which one run in ten million exceeds. A
// cookie that one worker set leads to the same endpoint in all.
func TestNewSessions(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const endpoints, workers, requests = 8, 4, 10_000
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, headgatetest.StartPlain(t, func(*http.Request) (int, string) {
			return 0, "X-Endpoint: " + addresses[i] + "\r\n"
		}))
	}
	shows, ingress := headgatetest.ShowsWorker()
	g := headgatetest.Start(t, headgatetest.Options{Workers: workers, Features: append(all.Features(), shows),
		Manifests: headgatetest.Service("fleet") + headgatetest.Endpoints("fleet", addresses...) + ingress + headgatetest.Config("keep-alive-requests: 1000000")})
	clients := g.Connections(workers, 2)
	even := map[string]float64{}
	for _, address := range addresses {
		even[address] = 1.0 / endpoints
	}
	for mode, shares := range map[string]map[string]float64{"persistent": even, "balanced": arcs(addresses)} {
		g.Apply(headgatetest.Ingress("web", host, "/", "fleet", "affinity: cookie", "affinity-mode: "+mode))
		var mu sync.Mutex
		counts, places := map[string]int{}, map[string]string{}
		var made [workers]int
		err := clients.Each(requests, func(c *headgatetest.Connection, _ int) error {
			response, err := c.Ask(host, "/")
			if err != nil {
				return err
			}
			at := response.Header.Get("X-Endpoint")
			cookie, _, found := strings.Cut(response.Header.Get("Set-Cookie"), ";")
			if !found {
				return errors.New("a new session without a cookie")
			}
			mu.Lock()
			defer mu.Unlock()
			counts[at]++
			// In persistent mode, there is one cookie for each endpoint.
			if before, known := places[cookie]; known && before != at {
				return fmt.Errorf("%s is of %s and of %s", cookie, before, at)
			}
			if made[c.Worker] < 50 {
				made[c.Worker]++
				places[cookie] = at
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for address, share := range shares {
			mean, most := requests*share, 6*math.Sqrt(requests*share*(1-share))
			if n := counts[address]; math.Abs(float64(n)-mean) > most {
				t.Errorf("%s: an endpoint got %d of %d new sessions, want %.0f ± %.0f", mode, n, requests, mean, most)
			}
		}
		for _, c := range clients {
			for cookie, want := range places {
				response, err := c.Ask(host, "/", "Cookie: "+cookie)
				if err != nil {
					t.Fatal(err)
				}
				if at := response.Header.Get("X-Endpoint"); at != want || response.Header.Get("Set-Cookie") != "" {
					t.Fatalf("%s: worker %d sends %s to %s, want %s, and sets %q", mode, c.Worker, cookie, at, want, response.Header.Get("Set-Cookie"))
				}
			}
		}
		if slices.Min(made[:]) == 0 {
			t.Errorf("%s: the workers made %v of the cookies", mode, made)
		}
	}
}

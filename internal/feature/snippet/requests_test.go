package snippet_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

var (
	targets = []string{
		"/", "/", "/a", "/a/b", "/a/b/c.css", "/app.js?v=1", "/api/v1/users?id=7&x=%20y", "/old/page", "/old/page?q=1", "/A/B", "/metrics",
		"/admin", "/admin/x", "/static/logo.png", "/exact", "/exact/", "/pre%20fix/a%2Fb", "/x//y", "/?", "/?debug=1", "/café", "/a;b=c", "/a+b?c=d+e",
	}
	headerLines = [][]string{
		{"User-Agent: curl/8", "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)", "User-Agent: bad\"bot"},
		{"Accept-Encoding: gzip", "Accept-Encoding: gzip, deflate, br", "Accept-Encoding: identity"},
		{"Origin: https://app.example", "Origin: https://evil.test", "Origin: null"},
		{"Cookie: session=abc; theme=dark", "Cookie: theme=light", "Cookie: a=1; session="},
		{"Authorization: Bearer xyz", "Authorization: Basic dTpw"},
		{"X-Auth-User: root", "X-Auth-User: "},
		{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 203.0.113.9, 10.0.0.1"},
		{"X-Plan: gold", "X-Plan: gold-2", "X-Plan: silver"},
		{"X-Flag: 1", "X-Flag: 0", "X-Flag: on"},
		{"X-Client: one", "X-Client: two"},
		{"Referer: https://ref.example/p"},
		{"If-None-Match: \"e1\"", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"},
		{"Accept: text/html", "Accept: */*"},
	}
	answerLines = [][]string{
		{"Content-Type: text/html", "Content-Type: text/html; charset=utf-8", "Content-Type: application/json", "Content-Type: text/css", "Content-Type: image/png"},
		{"Set-Cookie: id=1; Path=/; HttpOnly", "Set-Cookie: id=2; Domain=inner.local; Path=/in"},
		{"Cache-Control: no-cache", "Cache-Control: max-age=60"},
		{"X-Powered-By: PHP/5"},
		{"Server: Apache"},
		{"Location: http://internal.local/x", "Location: /moved"},
		{"Expires: Thu, 01 Jan 1970 00:00:01 GMT"},
		{"ETag: \"e1\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"},
		{"X-Frame-Options: DENY"},
		{"X-Version: 7"},
	}
	statuses = []int{200, 200, 200, 200, 200, 201, 204, 206, 301, 302, 304, 400, 401, 403, 404, 404, 405, 410, 429, 500, 502, 503, 504}
	bodies   = []string{
		"", "ok", "<html><head><title>internal</title></head><body>http://internal.local/x internal Internal</body></html>\n",
		strings.Repeat("some text that repeats, and internal names. ", 60),
	}
)

// requestsOf are many requests, the same for a seed.
func requestsOf(seed uint64, many int) []request {
	random := rand.New(rand.NewPCG(seed, 18))
	list := make([]request, many)
	for i := range list {
		list[i] = randomRequest(random, i)
	}
	return list
}

func randomRequest(random *rand.Rand, i int) request {
	methods := []string{"GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
	r := request{method: pick(random, methods), target: pick(random, targets), headers: []string{fmt.Sprint("X-Request-ID: ", i)}}
	r.headers = append(r.headers, some(random, headerLines, 3)...)
	if r.method == "POST" || r.method == "PUT" || r.method == "PATCH" {
		r.body = strings.Repeat("b", random.IntN(3)*700)
	}
	r.answer = answer{status: pick(random, statuses), headers: some(random, answerLines, 4), body: pick(random, bodies)}
	if r.answer.status == http.StatusPartialContent {
		r.answer.headers = append(r.answer.headers, "Content-Range: bytes 0-1/100")
	}
	r.auth = answer{status: pick(random, []int{200, 200, 200, 401, 403, 500}), headers: some(random, [][]string{
		{"X-Auth-User: alice", "X-Auth-User: bob"}, {"X-Auth-Token: t0k3n"}, {"WWW-Authenticate: Bearer"},
	}, 1)}
	return r
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

// some is one line of each of some lists; of one in odds.
func some(random *rand.Rand, lists [][]string, odds int) []string {
	var lines []string
	for _, list := range lists {
		if random.IntN(odds+1) == 0 {
			lines = append(lines, pick(random, list))
		}
	}
	return slices.Clip(lines)
}

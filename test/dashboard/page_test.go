package dashboard_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPage shows all pages with the demo, and with Ingresses that are wrong and hostile.
func TestPage(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.write("broken.yaml", broken(t))
	d.request("hello.localhost", "/about")
	chromium := startChromium(t)
	t.Run("pages", func(t *testing.T) { checkPages(tab(t, chromium, d.page)) })
	t.Run("hostile texts", func(t *testing.T) { checkHostile(tab(t, chromium, d.page)) })
	t.Run("explain", func(t *testing.T) { checkExplain(tab(t, chromium, d.page)) })
	t.Run("keyboard", func(t *testing.T) { checkKeyboard(tab(t, chromium, d.page)) })
	t.Run("a change appears", func(t *testing.T) { checkChange(tab(t, chromium, d.page), d) })
	t.Run("looks", func(t *testing.T) { checkLooks(tab(t, chromium, d.page), pages()...) })
	t.Run("no keys", func(t *testing.T) { checkKeys(t, d) })
	t.Run("nothing may be loaded from elsewhere", func(t *testing.T) { checkPolicy(tab(t, chromium, d.page)) })
	t.Run("pictures", func(t *testing.T) { takePictures(tab(t, chromium, d.page), d) })
}

// pages are links to all kinds of pages.
func pages() []string {
	return []string{
		"/#/", "/#/hosts", "/#/host/shop.localhost", "/#/host/pay.localhost", "/#/backends", "/#/backend/demo%2Fhello%2F80", "/#/backend/payments%2Fpay%2F80", "/#/certificates",
		"/#/findings", "/#/findings?object=ingress%2Fpayments%2Fpay", "/#/explain?url=http%3A%2F%2Fadmin.localhost%2F", "/#/explain", "/#/changes",
	}
}

// checkPages: each page shows what the demo has.
func checkPages(b *browser) {
	b.open("/#/")
	b.has("serving", "synced", "Needs attention", "payments/pay/80", "InvalidValue", "Last changes", "Busiest hosts", "folder ", "workers of generation")
	b.lacks("Edges", "edge")
	b.open("/#/hosts")
	b.has("hello.localhost", "shop.localhost", "*.apps.localhost", "ingress/demo/shop", "demo/shop-tls", "7 hosts")
	b.open("/#/hosts?problems=true")
	b.has("admin.localhost", "1 path denied")
	b.lacks("shop.localhost")
	b.open("/#/host/shop.localhost")
	b.has("/cart", "demo/cart/web", "ingress/demo/shop", "demo/shop-tls")
	b.open("/#/backends")
	b.has("demo/hello/80", "2 endpoints", "no endpoint: requests are answered 503")
	b.open("/#/backend/demo%2Fhello%2F80")
	b.has("127.0.0.1:", "gets requests", "hello.localhost")
	b.open("/#/backend/payments%2Fpay%2F80")
	b.has("an EndpointSlice in the namespace payments with the label kubernetes.io/service-name: pay")
	b.lacks("kubectl")
	b.open("/#/certificates")
	b.has("demo/shop-tls", "demo/apps-tls", "made by Headgate", "all names without one")
	b.open("/#/host/pay.localhost")
	b.has("4 findings about this host", "must be an integer")
	b.lacks("whitelist-source-range")
	b.open("/#/findings?host=pay.localhost")
	b.has("only pay.localhost", "1–4 of 4 findings", "show all")
	b.open("/#/findings")
	b.has("whitelist-source-range", "nesw")
	if first := evaluate[string](b, "document.querySelector('tbody tr').innerText"); !strings.Contains(first, "ingress/payments/admin") || !strings.Contains(first, "■") {
		b.t.Errorf("what denies requests is not the first finding: %s", first)
	}
	b.open("/#/findings?code=InvalidValue")
	b.has("must be an integer", "using the default", "show all")
	b.open("/#/changes")
	b.has("ingress/payments/pay", "backend payments/pay/80", "units pushed")
	b.open("/#/nonsense")
	b.has("No such page")
	b.open("/#/host/nonsense.localhost")
	b.expect("status of 404")
	b.has(`no host "nonsense.localhost"`)
}

// expect lets the test pass with faults that have one of the texts.
func (b *browser) expect(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, texts...)
}

// checkHostile: texts of tenants are shown as they are, and run nothing.
func checkHostile(b *browser) {
	for _, link := range []string{
		"/#/findings?object=ingress%2Fpayments%2Fpay", "/#/host/pay.localhost", "/#/certificates", "/#/explain?url=http%3A%2F%2Fadmin.localhost%2F",
		"/#/hosts?q=" + hostile, "/#/findings?object=" + hostile + "&q=" + hostile + "&code=" + hostile,
	} {
		b.open(link)
		if !strings.Contains(link, "q=") {
			b.has(hostile)
		}
		if n := evaluate[int](b, "document.querySelectorAll('main img, main script, main [onerror], main iframe').length"); n > 0 {
			b.t.Errorf("%s has %d elements of a tenant", link, n)
		}
	}
	// What is not known in a link is text as well.
	b.open("/#/host/" + hostile)
	b.expect("status of 404")
	b.has(`no host "` + hostile)
	if links := evaluate[string](b, "[...document.querySelectorAll('a')].map((a) => a.getAttribute('href')).filter((to) => !to.startsWith('#')).join(' ')"); links != "" {
		b.t.Errorf("links to elsewhere: %s", links)
	}
}

// checkExplain: the page says in its first line why a URL gives 503, and what to change.
func checkExplain(b *browser) {
	b.open("/#/")
	b.do(chromedp.SendKeys(chromedp.CSS("#search-text"), "pay.localhost/cart"+kb.Enter))
	b.has("503 Service Unavailable from Headgate", "GET https://pay.localhost/cart: backend payments/pay/80 has no endpoint in use", "What to do",
		"The Service pay has no endpoint that is used", "add one with the label kubernetes.io/service-name: pay", "ingress/payments/pay", "Step by step")
	b.lacks("kubectl")
	if first := evaluate[string](b, "document.querySelector('.verdict .what').innerText"); !strings.Contains(first, "503") {
		b.t.Errorf("the first line is %q", first)
	}
	b.do(chromedp.SetValue(chromedp.CSS("#explain-url"), "http://admin.localhost/"), chromedp.Click(chromedp.CSS(".explain button")))
	b.has("the annotation whitelist-source-range of ingress/payments/admin is rejected", "Correct whitelist-source-range of ingress/payments/admin", "must be IP addresses and networks")
	b.do(chromedp.SetValue(chromedp.CSS("#explain-url"), "https://shop.localhost/cart"), chromedp.SetValue(chromedp.CSS("#explain-headers"), "X-Test: one"),
		chromedp.SetValue(chromedp.CSS("#explain-from"), "10.0.0.1"), chromedp.Click(chromedp.CSS(".explain button")))
	b.has("The backend demo/cart/web gets the request", "it is the longest path that matches", "secret/demo/shop-tls", "NGINX has the newest version")
	if link := b.link(); !strings.Contains(link, "from=10.0.0.1") || !strings.Contains(link, "X-Test") {
		b.t.Errorf("the link %s does not have the form", link)
	}
	b.open("/#/explain?url=unknown.localhost")
	b.has("404 Not Found from Headgate", "no Ingress that is served has the host unknown.localhost; the built-in default backend answers", "Over https: the same.", "Hosts with localhost")
	b.open("/#/explain?url=https%3A%2F%2Fnews.localhost%2Fapi")
	b.has("The backend demo/about/80 may get the request", "clients get the default certificate: Secret nesw does not exist", "Correct spec.tls[0] of ingress/demo/news, or create secret/demo/nesw",
		"ingress/demo/news-too has the path /api too, with the backend demo/shop/80, but is not used: an older Ingress has the same path (ingress/demo/news).")
	b.lacks("secret/secret")
	b.open("/#/explain?url=https%3A%2F%2Fnews.localhost%2Fother")
	b.has("404 Not Found from Headgate", "no path of the host news.localhost matches /other", "Paths of news.localhost")
	b.open("/#/explain?url=http%3A%2F%2Fnews.localhost%2Fapi")
	b.has("308 Permanent Redirect from Headgate", "Explain https://news.localhost")
	b.open("/#/")
	b.do(chromedp.SendKeys(chromedp.CSS("#search-text"), "hello"+kb.Enter))
	b.until("hosts are searched", "location.hash === '#/hosts?q=hello'")
	b.has("1 of 1 hosts")
	b.expect("status of 400")
	b.open("/#/explain?url=ftp%3A%2F%2Fx")
	b.until("the mistake is shown", "document.querySelector('.failure') !== null")
}

// checkKeyboard: the tab key leads to the content, the search and all pages.
func checkKeyboard(b *browser) {
	b.open("/#/hosts")
	b.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	var reached []string
	for range 12 {
		b.do(chromedp.KeyEvent(kb.Tab))
		reached = append(reached, evaluate[string](b, "document.activeElement.getAttribute('href') ?? document.activeElement.id ?? ''"))
	}
	all := strings.Join(reached, " ")
	for _, want := range []string{"#main", "search-text", "#/hosts", "#/changes"} {
		if !strings.Contains(all, want) {
			b.t.Errorf("the tab key does not lead to %s: %s", want, all)
		}
	}
}

// checkChange: what changes is there a few seconds later, without a click, and has its time.
func checkChange(b *browser, d *demo) {
	b.open("/#/changes")
	name := filepath.Join(d.folder, "hello.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		b.t.Fatal(err)
	}
	d.write("hello.yaml", strings.Replace(string(text), "path: /about", "path: /contact", 1))
	b.has("ingress/demo/hello", "host hello.localhost")
	b.until("the time is known", "document.querySelector('tbody tr').innerText.includes('ms')")
	b.open("/#/host/hello.localhost")
	b.has("/contact")
	// Rates are those of requests that come while the page is open.
	b.has("Requests")
	b.until("requests are counted", func() string {
		d.request("hello.localhost", "/")
		return "document.body.innerText.includes('per second')"
	}())
}

// checkKeys: no answer has a key, or data of a Secret other than certificates' names and dates.
func checkKeys(t *testing.T, d *demo) {
	paths := []string{"/"}
	for _, resource := range []string{"status", "hosts", "backends", "certificates", "findings", "changes", "rates"} {
		paths = append(paths, "/v1/"+resource)
	}
	for _, kind := range []string{"host", "name", "backend", "certificate", "content", "globals"} {
		paths = append(paths, "/v1/units?kind="+kind)
	}
	for _, host := range []string{"shop.localhost", "hello.localhost", "pay.localhost", "admin.localhost"} {
		paths = append(paths, "/v1/routes?host="+host, "/v1/explain?url=https://"+host+"/")
	}
	paths = append(paths, "/v1/endpoints?backend=demo/hello/80")
	secrets := keyMaterial(t, d.folder)
	for _, path := range paths {
		status, text := d.get(path)
		if status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a part of a Secret: %s", path, secret)
			}
		}
	}
}

// keyMaterial is what must not appear: the data of Secrets in pieces, as written and decoded.
func keyMaterial(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	list := []string{"PRIVATE KEY", "BEGIN CERTIFICATE"}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			list = append(list, pieces(line)...)
		}
	}
	if len(list) < 20 {
		t.Fatalf("only %d pieces of Secrets are known", len(list))
	}
	return list
}

// takePictures writes the pictures in the documentation.
func takePictures(b *browser, d *demo) {
	// Package featuretest, which headgatetest imports, declares the flag.
	if flag.Lookup("update").Value.String() != "true" {
		return
	}
	for range 30 {
		d.request("hello.localhost", "/")
		d.request("shop.localhost", "/cart")
	}
	d.request("pay.localhost", "/")
	b.open("/#/")
	b.until("rates are measured", "document.body.innerText.includes('So far')")
	const explained = "/#/explain?url=https%3A%2F%2Fpay.localhost%2Fcart"
	for _, p := range []struct {
		name, link, scheme string
		width, height      int64
	}{
		{"overview", "/#/", "light", 1180, 760}, {"explain", explained, "light", 1180, 760},
		{"changes", "/#/changes", "light", 1180, 480}, {"narrow", explained, "dark", 390, 780},
	} {
		b.size(p.width, p.height)
		b.prefer(p.scheme)
		b.do(chromedp.Evaluate[chromedp.Void]("location.hash = " + quote(strings.TrimPrefix(p.link, "/"))))
		b.until(p.name+" is there", "document.querySelector('.region[aria-busy=false] table') !== null")
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatal(err)
		}
		if len(picture) > 150<<10 {
			b.t.Errorf("%s.png has %d bytes", p.name, len(picture))
		}
		b.save(filepath.Join("../../docs/images", "page-"+p.name+".png"), picture)
	}
}

func (b *browser) save(path string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// checkPolicy: the browser itself would refuse what a hole in the page lets in.
func checkPolicy(b *browser) {
	b.open("/#/")
	b.expect("Content Security Policy", "request to data:,x")
	b.do(chromedp.Evaluate[chromedp.Void](`window.ran = []; addEventListener("securitypolicyviolation", (e) => window.ran.push(e.violatedDirective));
		const s = document.createElement("script"); s.textContent = "window.ran.push('script')"; document.body.append(s);
		document.body.insertAdjacentHTML("beforeend", "<img src='data:,x' onerror='window.ran.push(1)'><p style='color:red'>x</p>");
		fetch("http://example.invalid/").catch(() => window.ran.push("no fetch")); undefined`))
	b.until("all is refused", "window.ran.length >= 5")
	got := fmt.Sprint(evaluate[[]any](b, "window.ran"))
	for _, want := range []string{"no fetch", "script-src-elem", "img-src", "style-src-attr", "connect-src"} {
		if !strings.Contains(got, want) {
			b.t.Errorf("%s is not refused: %s", want, got)
		}
	}
	if strings.Contains(got, "[script ") || strings.Contains(got, " script ") {
		b.t.Errorf("a script ran: %s", got)
	}
}

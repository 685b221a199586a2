package dashboard_test

import (
	"encoding/base64"
	"strings"

	"github.com/chromedp/cdproto/emulation"
)

// flaws is a function that lists what people who do not see, or do not see well, would miss.
const flaws = `(() => {
  const found = [];
  const note = (what, element) => found.push(what + ": " + element.outerHTML.slice(0, 120));
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const name = (element) => element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent.trim();
  if (!document.documentElement.lang) found.push("no language");
  if (document.querySelectorAll("main").length !== 1 || document.querySelectorAll("h1").length !== 1) found.push("not one main and one heading");
  if (!document.title.includes(document.querySelector("h1").textContent)) found.push("title: " + document.title);
  for (const element of document.querySelectorAll("input, textarea, button, a, summary")) if (!name(element)) note("no name", element);
  for (const element of document.querySelectorAll("img")) if (element.getAttribute("alt") === null) note("no alt", element);
  for (const element of document.querySelectorAll("table")) if (!element.caption?.textContent) note("no caption", element);
  for (const element of document.querySelectorAll("th")) if (!element.scope) note("no scope", element);
  for (const element of document.querySelectorAll("nav")) if (!element.getAttribute("aria-label")) note("no label", element);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push("id twice: " + id);
  let level = 0;
  for (const element of document.querySelectorAll("main h1, main h2, main h3")) {
    const own = Number(element.tagName[1]);
    if (own > level + 1) note("heading skips a level", element);
    level = own;
  }
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !shown(element) || element.closest(".hidden, .skip, noscript")) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) note("contrast " + contrast.toFixed(1), element);
  }
  return found.join("\n");
})()`

// checkLooks looks for what is often forgotten, in light and dark, and on a phone, where nothing
// must be wider than the screen.
func checkLooks(b *browser, links ...string) {
	grounds := map[string]bool{}
	for _, link := range links {
		b.open(link)
		for _, scheme := range []string{"light", "dark"} {
			b.prefer(scheme)
			grounds[evaluate[string](b, "getComputedStyle(document.body).backgroundColor")] = true
			if found := evaluate[string](b, flaws); found != "" {
				b.t.Errorf("%s, %s: %s", link, scheme, found)
			}
		}
		b.size(360, 740)
		if width := evaluate[int](b, "document.documentElement.scrollWidth"); width > 360 {
			b.t.Errorf("%s is %d pixels wide", link, width)
		}
		if wide := evaluate[string](b, "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText.slice(0, 80)).join('; ')"); wide != "" {
			b.t.Errorf("%s: a table is wider than the screen: %s", link, wide)
		}
		b.size(1280, 900)
	}
	if len(grounds) != 2 {
		b.t.Errorf("light and dark have the colours %v", grounds)
	}
}

func (b *browser) prefer(scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// pieces are parts of a line of a manifest with data of a Secret, in base64 and decoded.
func pieces(line string) []string {
	word := strings.TrimSpace(line)
	if _, value, ok := strings.Cut(word, ": "); ok && strings.HasPrefix(word, "tls.") {
		word = value
	}
	const length = 40
	if len(word) < length || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") != "" {
		return nil
	}
	var list []string
	for from := 0; from+length <= len(word); from += length {
		list = append(list, word[from:from+length])
	}
	if decoded, err := base64.StdEncoding.DecodeString(word); err == nil && strings.HasPrefix(string(decoded), "-----BEGIN") {
		for inner := range strings.Lines(string(decoded)) {
			list = append(list, pieces(inner)...)
		}
	}
	return list
}

// Package dashboard_test looks at the page for people in Chromium, as Debian has it.
package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A browser is a tab at the page. What must never happen there fails the test at its end:
// errors in the console, violations of the policy, dialogs, and requests to elsewhere.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string
	// opened is how often a page was opened.
	opened int

	mu       sync.Mutex
	faults   []string
	expected []string // parts of faults that are expected
}

// startChromium starts a browser without a tab.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: scripts/install-deps test installs it", err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(headgatetest.Timeout),
	}
	for _, flag := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions",
		"disable-dev-shm-usage", "disable-breakpad", "mute-audio", "hide-scrollbars",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	t.Cleanup(func() {
		// A browser that does not end is killed by stop.
		_ = chromedp.Cancel(ctx)
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// tab opens a tab for the page at an address.
func tab(t *testing.T, chromium context.Context, base string) *browser {
	t.Helper()
	b := &browser{t: t, base: base}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithListener(b.watch))
	b.ctx = ctx
	for _, command := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable} {
		call(b, command, cdp.Empty{})
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, page.Enable, page.EnableParams{})
	b.size(1280, 900)
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			if !slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(fault, part) }) {
				t.Error(fault)
			}
		}
	})
	return b
}

func (b *browser) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.fault("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		b.fault("console: %s %+v", e.Type, e.Args)
	case *log.EventEntryAdded:
		b.fault("log: %s %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		b.fault("dialog: %s", e.Message)
		go func() {
			// The tab may be closed already.
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base) {
			b.fault("request to %s", e.Request.URL)
		}
	}
}

func (b *browser) fault(format string, values ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, values...))
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, headgatetest.Timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.text())
	}
}

// call runs a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], parameters P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, parameters); err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

// open shows what a link leads to, until it is loaded.
func (b *browser) open(link string) {
	b.t.Helper()
	b.opened++ // Another link alone would not load the page again.
	b.do(chromedp.Navigate(fmt.Sprintf("%s/?%d%s", b.base, b.opened, strings.TrimPrefix(link, "/"))))
	b.until("the page "+link+" is loaded", "document.querySelector('.region[aria-busy=false]') !== null && document.getElementById('status').childElementCount > 0")
}

// until waits until an expression is true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			b.t.Logf("the page when waiting until %s:\n%s", what, b.text())
		}
	}()
	headgatetest.Eventually(b.t, what, func() bool {
		// Where the page changes at this moment, there is no result.
		yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && yes
	})
}

// has waits until the page has texts.
func (b *browser) has(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf("%s has %q", b.link(), text), "document.body.innerText.includes("+quote(text)+")")
	}
}

// lacks reports texts that the page has.
func (b *browser) lacks(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if strings.Contains(b.text(), text) {
			b.t.Errorf("%s has %q:\n%s", b.link(), text, b.text())
		}
	}
}

func (b *browser) text() string { return evaluate[string](b, "document.body.innerText") }

func (b *browser) link() string { return evaluate[string](b, "location.hash") }

// evaluate is the value of an expression in the page.
func evaluate[Value any](b *browser, expression string) Value {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[Value](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// quote writes a text as JavaScript has it.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

package modsecurity

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseRules: what may be written, and how it stands in the file.
func TestParseRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "",
		"# nothing":                       "",
		"secruleengine on":                "SecRuleEngine On\n",
		"SecRule ARGS \"bad\" id:1,deny":  "SecRule ARGS \"@rx (*LIMIT_MATCH=1000)bad\" \"id:1,deny\"\n",
		"SecRule ARGS \"!bad\" id:1,deny": "SecRule ARGS \"!@rx (*LIMIT_MATCH=1000)bad\" \"id:1,deny\"\n",
		"SecRule ARGS \"  ! @STREQ bad\" \"id:1, deny\"":                  "SecRule ARGS \"!@streq bad\" \"id:1,deny\"\n",
		"SecRule ARGS|!ARGS:/^x/ \"@rx a\\\\x22b\" \\\n  \"id:1\"":        "SecRule ARGS|!ARGS:/^x/ \"@rx (*LIMIT_MATCH=1000)a\\\\x22b\" \"id:1\"\n",
		"SecAction \"id:1,msg:a,t:'none',setvar:tx.x=+%{TX.y}\"":          "SecAction \"id:1,msg:'a',t:none,setvar:'tx.x=+%{TX.y}'\"\n",
		"SecRuleRemoveById 1 \"2-3\"\r\nSecMarker END":                    "SecRuleRemoveById 1 2-3\nSecMarker END\n",
		"SecRuleUpdateTargetById 5 \"!ARGS:x,!ARGS:y\"":                   "SecRuleUpdateTargetById 5 \"!ARGS:x,!ARGS:y\"\n",
		"Include /etc/nginx/modsecurity/modsecurity.conf":                 base,
		"Include /etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf": "",
	} {
		got, err := parseRules(text)
		if err != nil || got.text != want {
			t.Errorf("%q: %v\ngot:  %q\nwant: %q", text, err, got.text, want)
		}
	}
}

// TestRefusedRules: nothing reads files, runs programs, loads modules, asks servers, or reaches
// what is kept for other requests, however it is written.
func TestRefusedRules(t *testing.T) {
	t.Parallel()
	refused := strings.Split(strings.TrimSpace(`
Include /etc/passwd
Include "/etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf" /etc/passwd
INCLUDE /etc/nginx/owasp-modsecurity-crs/../../passwd
IncludeOptional /etc/passwd
SecRemoteRules key https://else.test/rules
SecRemoteRulesFailAction Warn
SecRuleScript /x.lua id:1
SecAuditLog /var/log/x
SecAuditLog "|/bin/sh"
SecAuditLog https://else.test/
SecAuditLog2 /dev/stdout
SecAuditLogType HTTPS
SecAuditLogType Concurrent
SecAuditLogStorageDir /tmp
SecAuditLogDirMode 0777
SecDebugLog /dev/stdout
SecDebugLogLevel 9
SecTmpDir /tmp
SecDataDir /tmp
SecUploadDir /tmp
SecUploadKeepFiles On
SecUploadFileMode 0777
SecGeoLookupDb /etc/passwd
SecUnicodeMapFile /etc/passwd 1
SecHttpBlKey x
SecGsbLookupDb /etc/passwd
SecGuardianLog /etc/passwd
SecChrootDir /
SecXmlExternalEntity On
SecStatusEngine On
SecConnEngine On
SecHashEngine On
SecCollectionTimeout 1
SecWebAppId other
SecRule ARGS "@pmFromFile /etc/passwd" id:1
SecRule ARGS "@pmf /etc/passwd" id:1
SecRule ARGS "!@PMFROMFILE /etc/passwd" id:1
SecRule ARGS " @pmFromFile /etc/passwd" id:1
SecRule ARGS "@ipMatchFromFile /etc/passwd" id:1
SecRule ARGS "@ipMatchF https://else.test" id:1
SecRule ARGS "@inspectFile /bin/sh" id:1
SecRule ARGS "@fuzzyHash /etc/passwd 1" id:1
SecRule ARGS "@validateDTD /etc/passwd" id:1
SecRule ARGS "@validateSchema /etc/passwd" id:1
SecRule ARGS "@geoLookup" id:1
SecRule ARGS "@gsbLookup x" id:1
SecRule ARGS "@rbl else.test" id:1
SecRule ARGS "@rsub s/a/b/" id:1
SecRule ARGS "@rx%{ENV.PATH}" id:1
SecRule ARGS "@rx ^%{ARGS.x}" id:1
SecRule ARGS "%{TX.x}" id:1
SecRule ARGS "@verifyCC %{TX.x}" id:1
SecRule ARGS "@rx 100%" id:1
SecRule ARGS "@streq %{ENV.PATH}" id:1
SecRule ARGS "@streq %{env:PATH}" id:1
SecRule ARGS "@streq %{IP.x}" id:1
SecRule ARGS "@streq %{" id:1
SecRule ARGS "@rx (" id:1
SecRule ARGS "@rx a\\" id:1
SecRule ARGS "@rx a\\\" id:1" x
SecRule ENV:PATH "@rx ." id:1
SecRule &ENV "@gt 0" id:1
SecRule ARGS|ENV "@rx ." id:1
SecRule ARGS,ENV "@rx ." id:1
SecRule IP:x "@rx ." id:1
SecRule GLOBAL:x "@rx ." id:1
SecRule SESSION:x "@rx ." id:1
SecRule USER:x "@rx ." id:1
SecRule RESOURCE:x "@rx ." id:1
SecRule GEO:x "@rx ." id:1
SecRule ARGS "@rx ." "id:1,exec:/bin/sh"
SecRule ARGS "@rx ." "id:1,EXEC:'/bin/sh'"
SecRule ARGS "@rx ." "id:1, exec : /x.lua"
SecRule ARGS "@rx ." "id:1,msg:'a',exec:/bin/sh,msg:'b'"
SecRule ARGS "@rx ." "id:1,msg:'a','exec:/bin/sh'"
SecRule ARGS "@rx ." "id:1,initcol:ip=x"
SecRule ARGS "@rx ." "id:1,setsid:x"
SecRule ARGS "@rx ." "id:1,setuid:x"
SecRule ARGS "@rx ." "id:1,setrsc:x"
SecRule ARGS "@rx ." "id:1,expirevar:ip.x=1"
SecRule ARGS "@rx ." "id:1,setenv:PATH=/tmp"
SecRule ARGS "@rx ." "id:1,setvar:ip.x=1"
SecRule ARGS "@rx ." "id:1,setvar:'global.x=1'"
SecRule ARGS "@rx ." "id:1,setvar:tx.x=%{ENV.PATH}"
SecRule ARGS "@rx ." "id:1,logdata:'%{ENV.PATH}'"
SecRule ARGS "@rx ." "id:1,logdata:'%{TX.x%{ENV.PATH}}'"
SecRule ARGS "@rx ." "id:1,xmlns:x=http://else.test"
SecRule ARGS "@rx ." "id:1,proxy:http://else.test"
SecRule ARGS "@rx ." "id:1,append:'x'"
SecRule ARGS "@rx ." "id:1,pause:10000"
SecRule ARGS "@rx ." "id:1,ctl:debugLogLevel=9"
SecRule ARGS "@rx ." "id:1,ctl:hashEngine=On"
SecRule ARGS "@rx ." "id:1,status:200"
SecRule ARGS "@rx ." "id:1,deny:x"
SecRule ARGS "@rx ." "id:901001"
SecRule ARGS "@rx ." "id:'9001000'"
SecRule ARGS "@rx ." "id:99999999999"
SecRule ARGS "@rx ." "id"
SecRule ARGS "@rx ." ""
SecRule ARGS "@rx ." "id:1" "id:2"
SecRule ARGS
SecAction "id:1\"
SecAction "id:1,msg:'a\"
SecAction "id:1,msg:'a"b'"
SecAction 'id:1'
SecAction id:1"
SecRuleEngine On SecRuleEngine Off
SecRuleEngine "On
SecRuleEngine Perhaps
SecRuleUpdateActionById 5 exec:/bin/sh
SecRuleUpdateTargetById 5 ENV
SecRuleRemoveByTag "a" SecRemoteRules
SecRule ARGS "@streq \" id:5 SecDebugLog /tmp/x #" id:1
SecRule ARGS "@contains \" msg:a,id:5,exec:/x.lua" id:1
SecRule ARGS "@contains a\"b" id:1
SecRule ARGS "@rx a%" "id:1,msg:'x id:5 SecDebugLog /tmp/x #'"
SecRule ARGS "@rx \%{TX.a}" id:1
SecRule ARGS "@rx" id:1
SecRule ARGS:/(a*)*/ "@rx a" id:1
SecRule ARGS "@detectSQLi SecDebugLog /tmp/x" id:1
SecRule ARGS "@noMatch" id:1
SecRule ARGS "@rx ." "id:1,msg:a%,deny"
SecRule ARGS "@rx ." "id:1,msg:'',deny"
SecRule ARGS "@rx ." "id:1,redirect:/a%20b"
SecAction "id:1,setvar:'tx.a=x,exec:/x.lua,msg:x'"
SecAction "id:1,setvar:'tx.a=x,initcol:ip=x'"
SecAction "id:1,setvar:'!tx.a=1'"
SecAction "id:1,rev:exec:/x.lua"
SecAction "id:1,ver:x"
SecAction "id:1,maturity:1,accuracy:1"
SecAction "id:1,t:exec"
SecAuditLogFormat Native
SecPcreMatchLimit 1001
SecPcreMatchLimit 0
SecPcreMatchLimitRecursion 1001
SecArgumentsLimit 1001
SecRequestBodyLimit 13107201
SecRequestBodyLimit 0
SecRequestBodyNoFilesLimit 13107201
SecRequestBodyLimit -1
SecRequestBodyLimit 1e9
SecRequestBodyLimit 99999999999
load_module /x.so
modsecurity off;`), "\n")
	refused = append(refused, "SecRuleEngine On\x00", "SecRuleEngine On\x1b", "SecRuleEngine On\xff", "SecRuleEngine On\\", "\"SecRuleEngine\nInclude /etc/passwd\" On",
		"SecRule ARGS \"a\nInclude /etc/passwd\" id:1",
		strings.Repeat("#", maxBytes+1), strings.Repeat("SecMarker END\n", maxDirectives+1),
		fmt.Sprintf("SecRule ARGS \"%s\" id:1", strings.Repeat("(?:\\w{1,200}){1,100}", 20)))
	for _, text := range refused {
		if got, err := parseRules(text); err == nil {
			t.Errorf("%.100q is taken: %q", text, got.text)
		}
	}
}

func TestWithoutInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Rules error. Line: 6. Column: 54. Expecting an action, got: root:x:0": "Rules error. Line: 6. Column: 54.",
		"Rules error. Line: 6. Invalid input: root:x:0":                        "Rules error. Line: 6.",
		"Rules error. Rule id: 5 is duplicated":                                "Rules error. Rule id: 5 is duplicated",
	} {
		if got := withoutInput(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAdminRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]adminRules{
		"":                 {},
		"SecRuleEngine On": {text: "SecRuleEngine On\n"},
		"SecRuleEngine On\r\nInclude " + coreInclude: {text: "SecRuleEngine On\n", core: true},
		"include \"" + coreInclude + "\"":            {core: true},
		"Include /etc/mine.conf":                     {text: "Include /etc/mine.conf\n", includes: true},
		"SecRuleScript /x.lua":                       {text: "SecRuleScript /x.lua\n"},
	} {
		if got, err := parseAdminRules(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// FuzzParseRules: what is written can be read again as the same, with each directive, operator
// and action among those that are allowed; none of the dangerous words begins a line.
func FuzzParseRules(f *testing.F) {
	for _, seed := range []string{
		"SecRuleEngine On", "SecRule ARGS|!ARGS:/x/ \"!@rx a\\\"b%{TX.0}\" \"id:1,msg:'a, b',ctl:ruleRemoveById=1-2\"", "SecAction \\\n id:1",
		"Include " + baseInclude, "SecRuleUpdateTargetById 1 \"!ARGS:x\"", "SecAuditLogRelevantStatus \"^5\"", "SecRule XML://@* \"@detectSQLi\" id:1,deny",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseRules(text)
		if err != nil {
			return
		}
		for part := range strings.Lines(first.text) {
			if !strings.HasSuffix(part, "\n") {
				t.Fatalf("%q ends without a line end", part)
			}
			name, rest, _ := strings.Cut(strings.TrimSuffix(part, "\n"), " ")
			if d, known := find(allowed(), name); !known || d.name != name {
				t.Fatalf("%q is written as %q", text, part)
			}
			if strings.Count(strings.ReplaceAll(rest, `\"`, ""), `"`)%2 != 0 || strings.HasSuffix(rest, `\"`) || strings.Contains(rest, `\\"`) {
				t.Fatalf("%q is written as %q", text, part)
			}
		}
		if len(first.text) > maxBytes {
			return
		}
		again, err := parseRules(first.text)
		if err != nil || again.text != first.text {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, first.text, again.text, err)
		}
	})
}

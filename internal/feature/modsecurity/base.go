package modsecurity

// base are the rules without others: they report and refuse nothing. The IDs are those of the
// module's recommended rules, by which users remove them. What goes to the log of the container
// has neither headers nor bodies, which may have passwords.
const base = `SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecRequestBodyLimit 13107200
SecRequestBodyNoFilesLimit 131072
SecRequestBodyLimitAction Reject
SecRequestBodyJsonDepthLimit 512
SecArgumentsLimit 1000
SecPcreMatchLimit 1000
SecPcreMatchLimitRecursion 1000
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain text/html text/xml
SecResponseBodyLimit 524288
SecResponseBodyLimitAction ProcessPartial
SecAuditEngine RelevantOnly
SecAuditLogRelevantStatus "^(?:5|4(?!04))"
SecAuditLogParts AHZ
SecAuditLogType Serial
SecAuditLogFormat JSON
SecAuditLog /dev/stdout
SecRule REQUEST_HEADERS:Content-Type "@rx (*LIMIT_MATCH=1000)(?i)^(?:text|application)/(?:soap\+)?xml" "id:200000,phase:1,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "@rx (*LIMIT_MATCH=1000)(?i)^application/json" "id:200001,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQBODY_ERROR "!@eq 0" "id:200002,phase:2,deny,status:400,log,msg:'the body of the request is invalid',logdata:'%{REQBODY_ERROR_MSG}',severity:2"
SecRule MULTIPART_STRICT_ERROR "!@eq 0" "id:200003,phase:2,deny,status:400,log,msg:'the multipart body of the request is not strict',severity:2"
SecRule MULTIPART_UNMATCHED_BOUNDARY "@eq 1" "id:200004,phase:2,deny,log,msg:'the multipart body of the request may have another boundary'"
SecRule TX:/^MSC_/ "!@streq 0" "id:200005,phase:2,deny,log,msg:'ModSecurity failed: %{MATCHED_VAR_NAME}'"
SecRule &ARGS "@ge 1000" "id:200007,phase:2,deny,status:400,log,msg:'the request has too many arguments',severity:2"
`

// The files that rules for ingress-nginx include. Headgate has their content, or its own
// rules of the same effect, without reading them again for each location.
const (
	baseInclude = "/etc/nginx/modsecurity/modsecurity.conf"
	coreInclude = imageFolder + "nginx-modsecurity.conf"
)

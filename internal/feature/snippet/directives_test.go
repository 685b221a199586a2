package snippet_test

// A directive has the texts that are compared with NGINX.
type directive struct {
	name string
	// in is where the texts may stand.
	in places
	// repeats is set where a block may have two of them, and guards where it is compared
	// beside an auth service and an address list too.
	repeats, guards bool
	// alone is set where it is not compared beside others.
	alone bool
	// bodiless is set where requests have no body.
	bodiless bool
	texts    []string
}

type places int

const (
	inLocation places = 1 << iota
	inServer
	inBoth = inLocation | inServer
)

func directives() []directive {
	return append(append(append(append(steps(), headers()...), guards()...), settings()...), blocks()...)
}

func steps() []directive {
	return []directive{
		{name: "set", in: inBoth, repeats: true, texts: []string{
			`set $mark "a$uri"; proxy_set_header X-Mark $mark;`,
			`set $mark $arg_id; set $mark "${mark}-$request_method"; add_header X-Mark $mark always;`,
			`set $flag ""; if ($http_x_flag = 1) { set $flag "F"; } if ($request_method = POST) { set $flag "${flag}P"; } if ($flag = "FP") { return 418 both; } proxy_set_header X-Was $flag;`,
		}},
		{name: "if", in: inBoth, repeats: true, guards: true, texts: []string{
			`if ($request_method = OPTIONS) { return 204; }`,
			`if ($http_user_agent ~* (bot|crawl)) { return 403; }`,
			`if ($http_user_agent ~ "([A-Z][a-z]+)/([0-9])") { set $agent "$2-$1"; } proxy_set_header X-Agent $agent;`,
			`if ($http_x_flag) { return 410; }`,
			`if ($host != $http_host) { return 301 https://$host$request_uri; }`,
			`if ($http_origin !~ ^https://app[.]example$) { return 403 "no $http_origin\n"; }`,
			`if ($request_uri !~* \.(js|CSS)) { set $other 1; } if ($other = 1) { return 302 /assets$request_uri; }`,
			`if ($args ~ id=(?<id>[0-9]+)) { return 200 "id $id"; }`,
			`if ($cookie_session = "") { return 401; }`,
		}},
		{name: "if with effects", in: inLocation, texts: []string{
			`add_header X-Outer 1; if ($http_x_flag = 1) { add_header X-Inner 2 always; }`,
			`if ($request_uri ~* \.(css|js)) { expires 7d; add_header Cache-Control public; }`,
			`more_set_headers "X-A: 1"; if ($request_method = POST) { more_set_headers "X-A: 2" "X-B: 3"; more_clear_headers X-Powered-By; }`,
			`if ($http_x_plan = gold) { add_header X-One 1; } if ($http_x_flag = 1) { add_header X-Two 2; }`,
		}},
		{name: "return", in: inBoth, guards: true, texts: []string{
			`return 403;`, `return 404;`, `return 301 https://$host$request_uri;`, `return 302 /login?from=$uri;`, `return 308 https://other.example/;`,
			`return 200 "hello $remote_addr\n";`, `return 503 busy;`, `return 204;`, `return https://x.example/$args;`, `return 444;`, `return 307 "/x y";`,
			`return 303;`, `return 401;`, `return 200 "";`, `return 413;`, `return 500;`,
		}},
		{name: "rewrite", in: inLocation, repeats: true, texts: []string{
			`rewrite ^/old/(.*)$ /new/$1 redirect;`, `rewrite ^/a/(.*) /b/$1 break;`, `rewrite ^/a$ https://$host/b permanent;`,
			`rewrite ^/api/v1/(.*)$ /v1/$1?x=1 break;`, `rewrite ^/api/(.*)$ /v/$1?y=2? break;`, `rewrite ^(.*[^/])$ $1/ permanent;`,
			`rewrite (?i)^/a/b /c break; rewrite ^/c /d break;`, `rewrite ^/old /new; rewrite ^/new(.*) /newer$1 break;`, `rewrite ^/x//?(.*) /y/$1 redirect;`,
		}},
		{name: "rewrite in server", in: inServer, repeats: true, texts: []string{
			`rewrite ^/old/(.*)$ /new/$1 last;`, `rewrite ^/a/(.*) /b/$1;`, `rewrite ^/a$ https://$host/b permanent;`, `rewrite ^/static/(.*)$ http://cdn.example/$1;`,
			`rewrite ^/api/(.*)$ /v/$1?z=9 last;`, `rewrite ^/A(.*)$ /lower$1 break;`,
		}},
	}
}

func headers() []directive {
	return []directive{
		{name: "add_header", in: inBoth, repeats: true, texts: []string{
			`add_header X-One "1";`, `add_header X-Two "a $host b" always;`, `add_header Cache-Control "no-store";`, `add_header X-Uri $uri always;`,
			`add_header X-Empty $arg_none;`, `add_header X-Frame-Options SAMEORIGIN always; add_header X-Content-Type-Options nosniff;`,
			`add_header X-Upstream $upstream_http_x_version always;`, `add_header Set-Cookie "n=1; Path=/";`, `add_header X-Status $status always;`,
			`add_header Last-Modified "";`, `add_header ETag '"own"' always;`,
		}},
		{name: "expires", in: inBoth, texts: []string{`expires epoch;`, `expires off;`, `expires max;`, `expires -1;`}},
		{name: "more_set_headers", in: inBoth, repeats: true, texts: []string{
			`more_set_headers "X-Frame-Options: SAMEORIGIN";`, `more_set_headers "Server: hidden" "X-Powered-By: none";`, `more_set_headers -s 404 "X-Missing: $uri";`,
			`more_set_headers -t 'text/html' "X-Html: yes";`, `more_set_headers "X-Powered-By:";`, `more_set_headers "X-Plain";`, `more_set_headers "Content-Type: text/plain";`,
			`more_set_headers -s '403 500' -t 'text/html application/json' 'X-Two: 2';`, `more_set_headers "Cache-Control: private, max-age=0";`,
		}},
		{name: "more_clear_headers", in: inBoth, repeats: true, texts: []string{
			`more_clear_headers Server;`, `more_clear_headers "X-Powered-By" 'Set-Cookie';`, `more_clear_headers "X-*";`, `more_clear_headers -s 404 ETag;`,
		}},
		{name: "proxy_hide_header", in: inBoth, repeats: true, texts: []string{`proxy_hide_header X-Powered-By;`, `proxy_hide_header set-cookie;`, `proxy_hide_header Location;`, `proxy_hide_header ETag;`}},
		{name: "proxy_pass_header", in: inBoth, repeats: true, texts: []string{`proxy_pass_header Server;`, `proxy_pass_header Date;`}},
		{name: "proxy_set_header", in: inLocation, repeats: true, texts: []string{
			`proxy_set_header X-New "v $host";`, `proxy_set_header X-Auth-User "";`, `proxy_set_header Host inner.local;`, `proxy_set_header Accept-Encoding "";`,
			`proxy_set_header X-Forwarded-Proto https;`, `proxy_set_header X-Client $remote_addr;`,
			`proxy_set_header Authorization "Basic abc";`, `proxy_set_header X-Empty $arg_none;`, `proxy_set_header X-Plan $http_x_plan;`,
			`proxy_set_header Connection "upgrade"; proxy_set_header Upgrade $http_upgrade;`, `proxy_set_header cookie "only=1";`,
			`proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`, `proxy_set_header X-Real-IP $remote_addr;`,
		}},
		{name: "more_set_input_headers", in: inBoth, repeats: true, texts: []string{
			`more_set_input_headers "X-In: 1";`, `more_set_input_headers "Authorization: Bearer $http_x_plan";`, `more_set_input_headers -r "X-Plan: r";`, `more_set_input_headers "Cookie: x=1";`,
			`more_set_input_headers "User-Agent: none" "Accept: */*";`, `more_set_input_headers -t text/plain "X-Plain: 1";`,
		}},
		{name: "more_clear_input_headers", in: inBoth, repeats: true, texts: []string{
			`more_clear_input_headers X-Auth-User;`, `more_clear_input_headers "Cookie" Authorization;`, `more_clear_input_headers "X-F*";`, `more_clear_input_headers Accept-Encoding;`,
		}},
	}
}

func guards() []directive {
	return []directive{
		{name: "allow and deny", in: inBoth, repeats: true, guards: true, texts: []string{
			`deny all;`, `allow 127.0.0.1; deny all;`, `deny 127.0.0.0/8;`, `allow 10.0.0.0/8; allow ::1; deny 127.0.0.1; allow all;`, `allow all;`,
		}},
		{name: "satisfy", in: inBoth, guards: true, texts: []string{`satisfy any; allow 127.0.0.1; deny all;`, `satisfy all; deny 10.0.0.1;`, `satisfy any; deny all;`}},
		// For methods that it excludes, NGINX follows no steps of the block around it.
		{name: "limit_except", in: inLocation, guards: true, alone: true, texts: []string{`limit_except GET { deny all; }`, `limit_except GET POST { allow 10.0.0.0/8; deny all; }`}},
		{name: "auth_request_set", in: inLocation, guards: true, texts: []string{
			`auth_request_set $user $upstream_http_x_auth_user; proxy_set_header X-Auth-User $user;`,
			`auth_request_set $token $upstream_http_x_auth_token; add_header X-Token $token always;`,
			`auth_request_set $s $upstream_status; more_set_headers "X-Auth-Status: $s";`,
		}},
		{name: "error_page", in: inBoth, guards: true, texts: []string{
			`error_page 403 https://login.example/?to=$request_uri;`, `error_page 401 = https://login.example/;`, `error_page 404 https://none.example/;`,
			`proxy_intercept_errors on; error_page 404 =200 https://x.example/404;`, `proxy_intercept_errors on; error_page 500 502 503 504 https://sorry.example/;`,
		}},
		// NGINX sends the body of the request for the page too, which then has the $request_uri of the other path. And a page
		// that an auth service refuses has the status of the refusal.
		{name: "error_page to a path", in: inBoth, alone: true, bodiless: true, texts: []string{
			`error_page 403 /denied; if ($uri = /a) { return 403; }`, `error_page 404 =200 /index.html?from=$arg_id; proxy_intercept_errors on;`,
			`error_page 500 502 503 504 = /50x?$args; proxy_intercept_errors on;`, `deny all; error_page 403 /denied;`, `error_page 404 /x; return 404;`,
			`error_page 401 403 =302 /login; if ($uri = /a/b) { return 401; }`,
			`add_header X-A 1; add_header X-B 2 always; more_set_headers -s 404 "X-C: $uri"; error_page 404 /none; error_page 403 =404 /no/ne%20; proxy_intercept_errors on;`,
			`error_page 405 $document_uri/page; if ($request_method = POST) { return 405; } more_set_headers "X-Method: $request_method";`,
		}},
		{name: "error_page to a location", in: inServer, alone: true, bodiless: true, texts: []string{
			`error_page 403 =200 /denied; location = /denied { internal; add_header X-D 1; return 200 "no $uri"; } location /admin { return 403; }`,
			`error_page 500 502 503 504 /50x.html; location = /50x.html { internal; default_type text/plain; return 200 "sorry"; } proxy_intercept_errors on;`,
			`error_page 404 /missing; location /missing { add_header X-M 1; add_header X-N 2 always; return 404; } location /old { return 404; }`,
			`error_page 404 /moved; location /moved { return 302 /new; } location /old { return 404; }`,
		}},
	}
}

func settings() []directive {
	return []directive{
		{name: "gzip", in: inBoth, texts: []string{
			`gzip on;`, `gzip on; gzip_types text/css application/json;`, `gzip off;`, `gzip on; gzip_types *; gzip_min_length 1000; gzip_comp_level 5;`, `gzip on; gzip_vary on; gzip_proxied any;`,
			`gzip on; gzip_disable "msie6"; gzip_http_version 1.1; gzip_buffers 16 8k; gzip_proxied expired no-cache auth;`,
		}},
		{name: "sub_filter", in: inBoth, texts: []string{
			`sub_filter '</head>' '<script src="/x.js"></script></head>'; sub_filter_once on; proxy_set_header Accept-Encoding "";`,
			`sub_filter internal outer; sub_filter_once off; sub_filter_types *;`, `sub_filter "internal.local" $host; sub_filter_types application/json text/css;`,
			`sub_filter internal one; sub_filter names two; sub_filter_once off; sub_filter_last_modified on; sub_filter_types text/html;`,
		}},
		{name: "sizes and times", in: inBoth, texts: []string{
			`client_max_body_size 1k;`, `client_max_body_size 0;`, `proxy_read_timeout 60s;`, `proxy_connect_timeout 5;`, `proxy_send_timeout 1m;`, `proxy_buffering on;`, `proxy_buffering off;`,
			`proxy_buffer_size 16k; proxy_buffers 8 16k;`, `proxy_busy_buffers_size 8k;`, `proxy_max_temp_file_size 0;`, `proxy_request_buffering off;`, `client_body_buffer_size 64k;`,
			`client_body_timeout 120;`, `send_timeout 30s;`,
		}},
		{name: "proxying", in: inBoth, texts: []string{
			`proxy_intercept_errors off;`, `proxy_intercept_errors on;`, `proxy_http_version 1.1;`, `proxy_http_version 1.0;`, `chunked_transfer_encoding off;`, `chunked_transfer_encoding on;`,
			`proxy_socket_keepalive on;`, `proxy_force_ranges on;`, `proxy_pass_request_headers on;`, `proxy_method POST;`, `proxy_method $request_method;`,
			`proxy_ignore_headers Cache-Control Expires Set-Cookie;`, `proxy_ignore_headers X-Accel-Redirect;`, `proxy_next_upstream error timeout invalid_header;`, `proxy_next_upstream_tries 2;`,
			`proxy_next_upstream_timeout 3;`, `proxy_ssl_name x.example;`, `proxy_ssl_server_name on;`, `proxy_ssl_verify off;`, `proxy_redirect off;`, `access_log off;`, `proxy_cache off;`,
		}},
		{name: "cookies and locations", in: inBoth, texts: []string{
			`proxy_cookie_path /in /out;`, `proxy_cookie_path / "/; Secure; HttpOnly";`, `proxy_cookie_domain inner.local outer.example;`, `proxy_cookie_flags ~ secure samesite=lax;`, `proxy_cookie_flags id nosecure httponly;`,
			`proxy_redirect http://internal.local/ /;`,
		}},
		{name: "limits", in: inBoth, guards: true, texts: []string{
			`limit_req zone=clients burst=2 nodelay;`, `limit_req zone=clients; limit_req_status 429; limit_req_log_level warn;`, `limit_req zone=clients burst=1 delay=1; limit_req_dry_run on;`,
			`limit_conn connections 10; limit_conn_status 429; limit_conn_log_level info;`, `limit_rate 1m; limit_rate_after 10m;`, `limit_rate 0;`,
		}},
		{name: "of the administrator", in: inBoth, texts: []string{`if ($plan = gold) { return 402 "pay $plan"; }`, `proxy_set_header X-Plan $plan; add_header X-Inside $inside always;`, `if ($inside) { return 403; }`}},
		{name: "without effect", in: inBoth, texts: []string{
			`server_tokens off;`, `etag on;`, `etag off;`, `log_not_found off;`, `log_subrequest off;`, `keepalive_timeout 60;`, `tcp_nodelay on;`, `sendfile on;`, `default_type text/plain;`, `if_modified_since off;`,
			`reset_timedout_connection on;`, `lingering_close on;`, `absolute_redirect on;`, `server_name_in_redirect off;`,
		}},
		{name: "without effect in a server", in: inServer, texts: []string{
			`large_client_header_buffers 4 16k;`, `client_header_buffer_size 8k;`, `client_header_timeout 10s;`, `port_in_redirect off;`, `ignore_invalid_headers on;`, `underscores_in_headers off;`,
		}},
	}
}

func blocks() []directive {
	return []directive{
		{name: "location in server", in: inServer, guards: true, texts: []string{
			`location /metrics { return 403; }`, `location = /exact { return 301 /exact/; }`, `location ~ ^/(admin|metrics) { deny all; return 401; }`, `location ~* \.PNG$ { return 404; }`,
			`location ^~ /static { add_header X-S 1 always; return 200 "static $uri"; }`, `location /a/b { rewrite ^/a/b(.*) /c$1 last; }`, `location = / { return 302 /home; }`,
			`location /old { if ($args) { return 400 "$args"; } return 410; }`, `location /x { deny all; }`, `location /admin { default_type application/json; return 200 '{"a":"$uri"}'; }`,
			`location @gone { return 410 gone; } error_page 404 = @gone; location /old { return 404; }`,
		}},
		{name: "location in location", in: inLocation, guards: true, texts: []string{
			`location /metrics { return 403; }`, `location ~ \.css$ { return 404; }`, `location = /exact { return 301 /exact/; }`, `location /a { location /a/b { return 302 /c; } return 401; }`,
		}},
	}
}

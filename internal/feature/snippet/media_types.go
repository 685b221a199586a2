package snippet

// mediaTypes are those that snippets may have compressed, or replace text in: no text of a
// tenant gets into nginx.conf. text/html is always one of them.
var mediaTypes = []string{
	"*",
	"application/atom+xml", "application/dash+xml", "application/eot", "application/font", "application/font-otf", "application/font-sfnt",
	"application/font-ttf", "application/font-woff", "application/font-woff2", "application/geo+json", "application/graphql",
	"application/graphql-response+json", "application/grpc-web-text", "application/hal+json", "application/javascript", "application/json",
	"application/ld+json", "application/manifest+json", "application/msword", "application/octet-stream", "application/opentype", "application/otf",
	"application/pdf", "application/pkcs7-mime", "application/problem+json", "application/protobuf", "application/rdf+xml", "application/rss+xml",
	"application/rtf", "application/schema+json", "application/soap+xml", "application/sql", "application/tar", "application/truetype",
	"application/ttf", "application/vnd.api+json", "application/vnd.apple.mpegurl", "application/vnd.geo+json", "application/vnd.mapbox-vector-tile",
	"application/vnd.ms-excel", "application/vnd.ms-fontobject", "application/vnd.ms-powerpoint", "application/wasm", "application/x-font",
	"application/x-font-opentype", "application/x-font-otf", "application/x-font-truetype", "application/x-font-ttf", "application/x-font-woff",
	"application/x-httpd-cgi", "application/x-httpd-php", "application/x-javascript", "application/x-json", "application/x-mpegurl",
	"application/x-ndjson", "application/x-opentype", "application/x-otf", "application/x-perl", "application/x-protobuf", "application/x-sh",
	"application/x-shockwave-flash", "application/x-tar", "application/x-ttf", "application/x-web-app-manifest+json", "application/x-www-form-urlencoded",
	"application/x-yaml", "application/xhtml+xml", "application/xml", "application/xml+rss", "application/yaml", "application/zip",
	"audio/mpeg", "audio/wav",
	"font/collection", "font/eot", "font/opentype", "font/otf", "font/sfnt", "font/truetype", "font/ttf", "font/woff", "font/woff2", "font/x-woff",
	"image/apng", "image/avif", "image/bmp", "image/gif", "image/jpeg", "image/jpg", "image/png", "image/svg+xml", "image/tiff",
	"image/vnd.microsoft.icon", "image/webp", "image/x-icon",
	"model/gltf+json", "model/gltf-binary", "multipart/bag", "multipart/mixed",
	"text/cache-manifest", "text/calendar", "text/css", "text/csv", "text/event-stream", "text/javascript", "text/js", "text/json", "text/markdown",
	"text/plain", "text/richtext", "text/rtf", "text/tab-separated-values", "text/turtle", "text/vcard", "text/vnd.rim.location.xloc", "text/vtt",
	"text/x-component", "text/x-cross-domain-policy", "text/x-java-source", "text/x-js", "text/x-markdown", "text/x-script", "text/xml", "text/yaml",
	"video/mp4", "video/mpeg",
}

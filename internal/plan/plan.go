// Package plan turns the model into bytes, static files and dynamic units, and
// compares them with what was applied. Bytes decide: NGINX is reloaded if and
// only if a static byte changed, and what is pushed is what differs.
//
// It does nothing itself: packages nginx and dataplane do.
package plan

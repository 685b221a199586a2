package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dockerBuild makes the content of the images by the same program as make image.
const dockerBuild = `# Written by go test ./internal/image -update. The images of make image, for those who build with Docker:
#
#	docker buildx build -f deploy/Dockerfile --target headgate --build-arg VERSION=v1.2.3 -t headgate:v1.2.3 .
FROM --platform=$BUILDPLATFORM docker.io/library/golang:%s-trixie AS build
ARG TARGETARCH
ARG VERSION=unknown
ARG REVISION=unknown
WORKDIR /src
COPY . .
RUN GOOS=linux GOARCH=$TARGETARCH CGO_ENABLED=0 \
    go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$REVISION" -o /build/headgate ./cmd/headgate
RUN go run -buildvcs=false ./scripts/image -version "$VERSION" -headgate $TARGETARCH=/build/headgate -root /build/root.tar -o /build/headgate.tar
RUN mkdir /build/root && tar --extract --preserve-permissions --numeric-owner --xattrs --xattrs-include='*' --file /build/root.tar --directory /build/root

FROM scratch AS content
COPY --from=build /build/root/ /
`

// Dockerfile is a Dockerfile for the images, of which the last one is the controller. golang
// is the version of Go.
func Dockerfile(in Input, golang string) string {
	var text strings.Builder
	fmt.Fprintf(&text, dockerBuild, golang)
	in.Version, in.Revision = "$VERSION", "$REVISION"
	kinds := Kinds()
	slices.Reverse(kinds)
	for _, k := range kinds {
		fmt.Fprintf(&text, "\nFROM content AS %s\nARG VERSION=unknown\nARG REVISION=unknown\n", k.Name)
		c := config(k, in)
		for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
			fmt.Fprintf(&text, "LABEL %s=%q\n", name, c.Labels[name])
		}
		for _, variable := range c.Env {
			name, value, _ := strings.Cut(variable, "=")
			fmt.Fprintf(&text, "ENV %s=%q\n", name, value)
		}
		fmt.Fprintf(&text, "USER %s\nWORKDIR %s\nSTOPSIGNAL %s\n", c.User, c.WorkingDir, c.StopSignal)
		for _, program := range []struct {
			instruction string
			words       []string
		}{{"ENTRYPOINT", c.Entrypoint}, {"CMD", c.Cmd}} {
			if len(program.words) > 0 {
				fmt.Fprintf(&text, "%s [\"%s\"]\n", program.instruction, strings.Join(program.words, `", "`))
			}
		}
	}
	return text.String()
}

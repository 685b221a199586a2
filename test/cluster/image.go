package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An image is a container image of one layer, made from files of this machine
// with no registry and no image tool.
type image struct {
	Name       string            `json:"name"` // with a tag
	Entrypoint []string          `json:"entrypoint"`
	Env        []string          `json:"env,omitempty"`
	User       string            `json:"user,omitempty"`
	Files      map[string]string `json:"files"` // from the path in the image to a file or directory here
}

// write writes the archive that `docker save` would.
func (i image) write(to io.Writer) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	sum := hash(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"Entrypoint": i.Entrypoint, "User": i.User, "WorkingDir": "/",
			"Env": append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, i.Env...),
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum}},
	})
	if err != nil {
		return err
	}
	layerFile, configFile := sum+"/layer.tar", hash(config)+".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configFile, "RepoTags": []string{i.Name}, "Layers": []string{layerFile},
	}})
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	for _, file := range []struct {
		name string
		data []byte
	}{{layerFile, layer}, {configFile, config}, {"manifest.json", manifest}} {
		if err := archive.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.data))}); err != nil {
			return err
		}
		if _, err := archive.Write(file.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// layer holds the files, and the directories that a container expects.
func (i image) layer() ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, dir := range []string{"dev", "etc", "proc", "run", "sys", "tmp"} {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode}); err != nil {
			return nil, err
		}
	}
	for _, to := range slices.Sorted(maps.Keys(i.Files)) {
		if err := addFiles(archive, strings.TrimPrefix(path.Clean(to), "/"), i.Files[to]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// addFiles adds what is at from, as to. A link is followed when it is named
// itself, and kept when it is in a directory that is named.
func addFiles(archive *tar.Writer, to, from string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return addFile(archive, path.Join(to, filepath.ToSlash(below)), file, entry)
	})
}

func addFile(archive *tar.Writer, to, from string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: to, Mode: int64(info.Mode().Perm())}
	switch {
	case entry.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, to+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(from); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	default:
		return fmt.Errorf("%s is neither a file, nor a directory, nor a link", from)
	}
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}

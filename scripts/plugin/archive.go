package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"time"
)

// An entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// writeArchive writes a .tar.gz whose bytes depend on the entries alone.
func writeArchive(to io.Writer, entries []entry) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

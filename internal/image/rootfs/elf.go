package rootfs

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// CheckPrograms checks that all programs and libraries are for a machine, and that each
// library that one of them needs is there.
func CheckPrograms(machine elf.Machine, trees ...*Tree) error {
	libraries := map[string]bool{}
	needed := map[string][]string{} // library to the files that need it
	var errs []error
	for _, t := range trees {
		for _, name := range t.Paths() {
			if isSearched(name) {
				libraries[path.Base(name)] = true
			}
			content := t.files[name].Content
			if !bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
				continue
			}
			list, err := imports(content, machine)
			if err != nil {
				errs = append(errs, fmt.Errorf("/%s: %w", name, err))
			}
			for _, library := range list {
				needed[library] = append(needed[library], "/"+name)
			}
		}
	}
	for library, by := range needed {
		if !libraries[library] {
			errs = append(errs, fmt.Errorf("no library %s, which %s needs", library, strings.Join(by, ", ")))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// imports are the libraries that a program needs.
func imports(content []byte, machine elf.Machine) ([]string, error) {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if program.Machine != machine {
		return nil, fmt.Errorf("is for %v, not %v", program.Machine, machine)
	}
	return program.ImportedLibraries()
}

// isSearched reports whether the loader looks for libraries where the file is. Those of
// character sets look in their own folder first.
func isSearched(name string) bool {
	dir := strings.TrimSuffix(path.Dir(name), "/gconv")
	return strings.Contains(path.Base(name), ".so") &&
		(dir == "usr/lib" || dir == "usr/lib64" || path.Dir(dir) == "usr/lib" && strings.HasSuffix(dir, "-linux-gnu"))
}

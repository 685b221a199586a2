package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// steadySource is a library that takes chance out of a process: LuaJIT draws which code
// it compiles, and how it hashes, from random numbers of the kernel and the clock. And
// callgrind makes a process so slow that regular expressions would use up their time.
const steadySource = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

long syscall(long number, ...) {
	va_list list;
	va_start(list, number);
	long a[6];
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_getrandom) {
		memset((void *)a[0], 7, a[1]);
		return a[1];
	}
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void srandom(unsigned seed) {
	void (*real)(unsigned) = dlsym(RTLD_NEXT, "srandom");
	real(1);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	static int (*real)(clockid_t, struct timespec *);
	if (clock == CLOCK_THREAD_CPUTIME_ID) {
		now->tv_sec = now->tv_nsec = 0;
		return 0;
	}
	if (!real)
		real = dlsym(RTLD_NEXT, "clock_gettime");
	return real(clock, now);
}
`

// buildSteady compiles the library, to be loaded before all others (LD_PRELOAD).
func (s *stage) buildSteady(ctx context.Context) (file string, err error) {
	source, file := filepath.Join(s.dir, "steady.c"), filepath.Join(s.dir, "steady.so")
	if err := os.WriteFile(source, []byte(steadySource), 0o644); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "gcc", "-shared", "-fPIC", "-O1", "-o", file, source, "-ldl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile with gcc: %w: %s", err, out)
	}
	return file, nil
}

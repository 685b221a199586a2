package cgroup

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, mounts, own string
		v2                bool
		want              []Tree
	}{{
		name: "version 2 with systemd", v2: true,
		mounts: "22 1 0:21 / /proc rw - proc proc rw\n" +
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
		own:  "0::/user.slice/user-0.slice/session-1.scope\n",
		want: []Tree{{mount: "/sys/fs/cgroup", own: "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"}},
	}, {
		name: "hybrid, two controllers in one tree",
		mounts: "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" +
			"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
			"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		own: "2:name=systemd:/init.scope\n1:cpu,cpuacct:/\n0::/init.scope\n",
		want: []Tree{
			{mount: "/sys/fs/cgroup/cpu,cpuacct", options: "cpu,cpuacct", own: "/sys/fs/cgroup/cpu,cpuacct"},
			{mount: "/sys/fs/cgroup/systemd", options: "name=systemd", own: "/sys/fs/cgroup/systemd/init.scope"},
		},
	}, {
		name: "a container that sees only its own group",
		mounts: "32 31 0:29 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
			"33 31 0:30 /docker/1234 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
		own: "2:memory:/docker/1234/below\n1:pids:/elsewhere\n",
		want: []Tree{
			{mount: "/sys/fs/cgroup/memory", options: "memory", own: "/sys/fs/cgroup/memory/below"},
			{mount: "/sys/fs/cgroup/pids", options: "pids", own: "/sys/fs/cgroup/pids"},
		},
	}} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(c.mounts, c.own, c.v2); !slices.Equal(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

package main

// Leader election is off: there is one of each. The rate limits on requests are
// high, so that they don't slow tests down.

func (c *cluster) apiArguments() []string {
	k := c.keys
	return []string{
		"--etcd-servers=" + etcdClientURL,
		"--bind-address=0.0.0.0",
		"--secure-port=6443",
		"--advertise-address=" + nodeAddress,
		"--tls-cert-file=" + k.path("apiserver.crt"),
		"--tls-private-key-file=" + k.path("apiserver.key"),
		"--client-ca-file=" + k.path("ca.crt"),
		"--kubelet-certificate-authority=" + k.path("ca.crt"),
		"--kubelet-client-certificate=" + k.path("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + k.path("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + k.path("sa.pub"),
		"--service-account-signing-key-file=" + k.path("sa.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true",
		"--max-requests-inflight=1000",
		"--max-mutating-requests-inflight=1000",
	}
}

func (c *cluster) controllerArguments() []string {
	k := c.keys
	return []string{
		"--kubeconfig=" + k.path("kube-controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + k.path("sa.key"),
		"--root-ca-file=" + k.path("ca.crt"),
		"--cluster-signing-cert-file=" + k.path("ca.crt"),
		"--cluster-signing-key-file=" + k.path("ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + podRange,
		"--node-cidr-mask-size=24",
		"--service-cluster-ip-range=" + serviceRange,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (c *cluster) schedulerArguments() []string {
	return []string{
		"--kubeconfig=" + c.keys.path("kube-scheduler.kubeconfig"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (c *cluster) proxyArguments() []string {
	return []string{
		"--kubeconfig=" + c.keys.path("kube-proxy.kubeconfig"),
		"--hostname-override=" + nodeName,
		"--proxy-mode=nftables",
		"--cluster-cidr=" + podRange,
		"--bind-address=127.0.0.1",
		// Holds for nftables too.
		"--iptables-min-sync-period=10ms",
		// Zero keeps the machine's settings.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s",
	}
}

func (c *cluster) kubeletArguments() []string {
	return []string{
		"--config=" + c.file("kubelet.yaml"),
		"--kubeconfig=" + c.keys.path("kubelet.kubeconfig"),
		"--root-dir=" + c.file("kubelet"),
		"--cert-dir=" + c.file("kubelet-pki"),
		"--hostname-override=" + nodeName,
		"--node-ip=" + nodeAddress,
	}
}

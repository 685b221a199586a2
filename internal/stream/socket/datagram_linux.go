package socket

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxDatagram is the size of the largest datagram.
const maxDatagram = 64 << 10

// datagramBatch is how many datagrams are read at once.
const datagramBatch = 16

// A RawAddress is an address as the kernel has it. It has room for both families.
type RawAddress = unix.RawSockaddrInet6

// Datagrams is room for the datagrams of a port. The kernel gives no memory for those that never
// come.
type Datagrams struct {
	headers  [datagramBatch]messageHeader
	vectors  [datagramBatch]unix.Iovec
	froms    [datagramBatch]RawAddress
	controls [datagramBatch][controlSize]byte
	data     *[datagramBatch][maxDatagram]byte
}

// NewDatagrams makes room for as many as are read at once.
func NewDatagrams() *Datagrams {
	return &Datagrams{data: new([datagramBatch][maxDatagram]byte)}
}

// A messageHeader is struct mmsghdr.
type messageHeader struct {
	unix.Msghdr
	n uint32
}

// Read reads what there is, and returns how many datagrams. It never waits.
func (d *Datagrams) Read(fd int) int {
	for i := range d.headers {
		h := &d.headers[i]
		d.vectors[i].Base = &d.data[i][0]
		d.vectors[i].SetLen(maxDatagram)
		*h = messageHeader{Msghdr: message(&d.vectors[i], &d.froms[i], d.controls[i][:])}
	}
	n, _ := call(unix.SYS_RECVMMSG, fd, unsafe.Pointer(&d.headers), datagramBatch, unix.MSG_DONTWAIT)
	return n
}

// Get is the datagram of an index, with its sender.
func (d *Datagrams) Get(i int) (data, control []byte, from *RawAddress) {
	h := &d.headers[i]
	return d.data[i][:h.n], d.controls[i][:h.Controllen], &d.froms[i]
}

// SendTo sends a datagram to an address, with a control message. It never waits.
func SendTo(fd int, data []byte, to *RawAddress, control []byte) error {
	vector := unix.Iovec{Base: unsafe.SliceData(data)}
	vector.SetLen(len(data))
	h := message(&vector, to, control)
	h.Namelen = sizeOf(to)
	_, err := call(unix.SYS_SENDMSG, fd, unsafe.Pointer(&h), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0)
	return err
}

func sizeOf(address *RawAddress) uint32 {
	if address.Family == unix.AF_INET {
		return unix.SizeofSockaddrInet4
	}
	return unix.SizeofSockaddrInet6
}

func message(vector *unix.Iovec, address *RawAddress, control []byte) unix.Msghdr {
	h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(address)), Namelen: unix.SizeofSockaddrInet6, Iov: vector, Control: unsafe.SliceData(control)}
	h.SetIovlen(1)
	h.SetControllen(len(control))
	return h
}

// AddressOf is the address of a client.
func AddressOf(raw *RawAddress) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:])
	if raw.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(raw)).Addr), port)
	}
	a := netip.AddrFrom16(raw.Addr).Unmap()
	if a.IsLinkLocalUnicast() && raw.Scope_id != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(raw.Scope_id), 10))
	}
	return netip.AddrPortFrom(a, port)
}

// rawOf is the opposite of AddressOf, without zones.
func rawOf(address netip.AddrPort) *RawAddress {
	raw := &RawAddress{Family: unix.AF_INET6, Addr: address.Addr().As16()}
	if address.Addr().Is4() {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		*four = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: address.Addr().As4()}
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:], address.Port())
	return raw
}

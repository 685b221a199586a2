package nginxconf

// Traffic says how workers count requests.
type Traffic struct {
	// Time, Length and Size are the upper bounds of buckets, in rising order: of times in
	// milliseconds, of sizes of requests and responses, and of sizes of responses alone, in bytes.
	Time, Length, Size []int64
	// PerHost counts each host apart, AnyHost also each name that clients ask for and no
	// Ingress has.
	PerHost, AnyHost bool
	// StatusClasses counts statuses by class.
	StatusClasses bool
	// Schema is the resolution of native histograms: each bucket is 2^(2^-Schema) times as wide as
	// the one below it. nil if there are none.
	Schema *int32
	// Excluded are families that are not counted, without their prefix.
	Excluded []string
}

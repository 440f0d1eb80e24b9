@testable import Discovery

/// A name in the form in which Avahi hands over record data.
func wire(_ labels: String...) -> [UInt8] { wire(labels) }

func wire(_ labels: [String]) -> [UInt8] { labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] }

/// Random numbers that are the same in each run (SplitMix64).
struct Numbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A service on the second interface, over IPv4.
func key(_ name: String, interface: CInt = 2, transport: CInt = 0, type: String = "_appreveal._tcp") -> ServiceKey {
    ServiceKey(interface: interface, transport: transport, name: Array(name.utf8), type: type, domain: "local")
}

func address(_ bytes: UInt8...) -> NetworkAddress? { NetworkAddress(bytes: bytes) }

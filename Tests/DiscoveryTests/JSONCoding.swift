@testable import Discovery

/// Encodes a name in the form in which Avahi passes record data.
func wire(_ labels: String...) -> [UInt8] { wire(labels) }

func wire(_ labels: [String]) -> [UInt8] { labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] }

/// The key of a service on interface 2 over IPv4.
func key(_ name: String, interface: CInt = 2, transport: CInt = 0, type: String = "_appreveal._tcp") -> ServiceKey {
    ServiceKey(interface: interface, transport: transport, name: Array(name.utf8), type: type, domain: "local")
}

func address(_ bytes: UInt8...) -> IPAddress? { IPAddress(bytes: bytes) }

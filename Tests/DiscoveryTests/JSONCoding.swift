@testable import Discovery

/// A name in the form in which Avahi hands over record data.
func wire(_ labels: String...) -> [UInt8] { wire(labels) }

func wire(_ labels: [String]) -> [UInt8] { labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] }

/// A service on the second interface, over IPv4.
func key(_ name: String, interface: CInt = 2, transport: CInt = 0, type: String = "_appreveal._tcp") -> ServiceKey {
    ServiceKey(interface: interface, transport: transport, name: Array(name.utf8), type: type, domain: "local")
}

func address(_ bytes: UInt8...) -> IPAddress? { IPAddress(bytes: bytes) }

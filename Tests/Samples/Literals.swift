package import Model

// The identities of tests are string literals, such as `let id: EndpointID = "shop.lab2"`. An invalid one ends the
// process.

extension EndpointID: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self = required(EndpointID(text)) }
}

extension HostName: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self = required(HostName(text)) }
}

extension UDID: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self = required(UDID(text)) }

    /// A phone.
    package static let sample: UDID = "00008030-001A2B3C4D5E6F70"
}

extension KeyPin {
    /// The pin of the key that has this byte 32 times as its digest.
    package static func sample(_ byte: UInt8) -> KeyPin {
        required(KeyPin(digest: [UInt8](repeating: byte, count: KeyPin.byteCount)))
    }
}

private func required<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("the sample is not a \(Value.self)") }
    return value
}

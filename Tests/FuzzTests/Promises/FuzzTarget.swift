/// The parsers of untrusted input, by the names of their folders in `Corpus`.
enum FuzzTarget: String, Sendable, CaseIterable {
    case head
    case json
    case name
    case pairingString = "pairing-string"
    case token
    case txt
    case usbmux

    /// Checks the promises for one input.
    ///
    /// - Throws: `Violation`; a crash of the parser ends the process.
    func check(_ input: [UInt8]) throws(Violation) {
        switch self {
        case .head: try HeadPromises.check(input)
        case .json: try JSONPromises.check(input)
        case .name: try NamePromises.check(input)
        case .pairingString: try PairingStringPromises.check(input)
        case .token: try TokenPromises.check(input)
        case .txt: try TXTPromises.check(input)
        case .usbmux: try UsbmuxPromises.check(input)
        }
    }
}

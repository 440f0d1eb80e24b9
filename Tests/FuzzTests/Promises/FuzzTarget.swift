/// The parsers of untrusted input, by the names of their folders in `Corpus`.
enum FuzzTarget: String, Sendable, CaseIterable {
    case adb
    case base64
    case browserGuard = "guard"
    case debug
    case events
    case form
    case frame
    case head
    case image
    case inflate
    case json
    case line
    case lockdown
    case muxclient
    case name
    case pairing
    case pem
    case profile
    case repair
    case response
    case token
    case txt
    case usbmux

    /// Checks the promises for one input.
    ///
    /// - Throws: `Violation`; a crash of the parser ends the process.
    func check(_ input: [UInt8]) throws(Violation) {
        switch self {
        case .adb: try ADBPromises.check(input)
        case .base64: try Base64Promises.check(input)
        case .browserGuard: try GuardPromises.check(input)
        case .debug: try DebugPromises.check(input)
        case .events: try EventPromises.check(input)
        case .form: try OAuthPromises.check(input)
        case .frame: try FramePromises.check(input)
        case .head: try HeadPromises.check(input)
        case .image: try ImagePromises.check(input)
        case .inflate: try InflatePromises.check(input)
        case .json: try JSONPromises.check(input)
        case .line: try FramePromises.checkLines(input)
        case .lockdown: try ServerPromises.checkLockdown(input)
        case .muxclient: try ServerPromises.check(input)
        case .name: try NamePromises.check(input)
        case .pairing: try PairingPromises.check(input)
        case .pem: try PEMPromises.check(input)
        case .profile: try ProfilePromises.check(input)
        case .repair: try RepairPromises.check(input)
        case .response: try ResponsePromises.check(input)
        case .token: try TokenPromises.check(input)
        case .txt: try TXTPromises.check(input)
        case .usbmux: try UsbmuxPromises.check(input)
        }
    }
}

/// A broken promise of a parser.
struct Violation: Error, CustomStringConvertible {
    let promise: String

    var description: String { "not kept: \(promise)" }
}

/// - Throws: `Violation` if the condition is false.
func promise(_ words: @autoclosure () -> String, _ holds: Bool) throws(Violation) {
    guard holds else { throw Violation(promise: words()) }
}

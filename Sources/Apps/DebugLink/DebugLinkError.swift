package import Model

/// The reason why an app's connection ended, or why a request for a state was refused.
package enum DebugLinkError: Error, Hashable, Sendable {
    /// A frame begins with another byte than 0xCE.
    case wrongSignature(UInt8)
    /// A frame announces a length below 1 or above the limit.
    case invalidLength(Int, limit: Int)
    /// The content of a frame begins with a byte that begins no JSON text.
    case notJSON(UInt8)
    /// The content of a frame is not a message of an app; with the reason.
    case invalidMessage(String)
    /// The connection ended in the middle of a frame.
    case endedInFrame
    /// No byte of a frame arrived for this time. `length` is the announced length of its content; nil if its header is
    /// incomplete.
    case stalledInFrame(received: Int, length: Int?, seconds: Int)
    /// The incomplete frames of all apps together need more memory than the limit.
    case tooManyIncompleteBytes(limit: Int)
    /// The connection failed; with the reason.
    case connectionFailed(String)
    case tooManyApps(limit: Int)
    case noSuchApp(Int)
    case noSuchState(Int, held: ClosedRange<Int>?)
    case noSuchValue(JSONPointer, state: Int)
    /// The app sent no picture with this state.
    case noPicture(state: Int)
    /// No held state of the app has a picture.
    case noPictures
    /// The picture was dropped to save memory.
    case pictureDropped(state: Int)
    /// The picture is not a PNG or JPEG file in base64.
    case invalidPicture(state: Int)
    /// The app's connection has ended.
    case disconnected(app: Int)
    /// The app might not decode the state. The text is the difference from its last state. `fitting` has the held states
    /// with the shape of its last state.
    case differentShape(String, fitting: [Int])
    case invalidState(JSONError)
    /// No states of an earlier launch are held.
    case noPreviousLaunch
    /// The app did not read within the time limit.
    case notTaken(seconds: Int)
    /// No owner has approved the app, so another debugger may not send it a state.
    case notApproved(app: Int)
    /// The other debugger is this server itself.
    case ownServer
    case pictureTooLarge(state: Int, bytes: Int, limit: Int)
    /// An argument of a tool cannot be used. The text continues the sentence after the name.
    case invalidArgument(String, String)
}

extension DebugLinkError {
    /// Indicates whether the requested state, value or picture does not exist.
    var isNotFound: Bool {
        switch self {
        case .noSuchApp, .noSuchState, .noSuchValue, .noPicture, .noPictures, .pictureDropped, .noPreviousLaunch: true
        default: false
        }
    }
}

extension DebugLinkError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .wrongSignature(let byte):
            "a frame begins with \(Self.hexadecimal(byte)) instead of 0xCE; check that the app speaks the protocol "
                + "of _debug._tcp"
        case .invalidLength(let length, let limit) where (1...limit).contains(Self.swapped(length)):
            "a frame announces \(length) bytes, or \(Self.swapped(length)) in the other byte order; send the length in "
                + "little-endian byte order"
        case .invalidLength(let length, let limit):
            "a frame announces \(length) bytes, and the limit is 1 to \(limit) bytes; send smaller pictures or states"
        case .notJSON(let byte):
            "the content of a frame begins with \(Self.hexadecimal(byte)), which begins no JSON; check the app's framing"
        case .invalidMessage(let reason):
            "a message is not {\"state\": …, \"action\": …, \"imageData\": …}: \(reason); check the app's debugger client"
        case .endedInFrame:
            "the app disconnected in the middle of a frame; start the app again"
        case .stalledInFrame(let received, let length, let seconds):
            "the app sent \(received)\(length.map { " of \($0)" } ?? "") bytes of a frame, and then nothing for "
                + "\(seconds) s; send the length in little-endian byte order, or continue the app if it is stopped at a "
                + "breakpoint"
        case .tooManyIncompleteBytes(let limit):
            "the incomplete frames of all apps exceed \(limit) bytes; connect fewer apps, or send smaller pictures"
        case .connectionFailed(let reason):
            "the connection failed: \(reason); start the peer again"
        case .tooManyApps(let limit):
            "the limit of \(limit) connected apps is reached; quit an app that is not needed"
        case .noSuchApp(let app):
            "no app of the state debugger has the number \(app); list the apps"
        case .noSuchState(let number, let held?):
            "state \(number) is not held; choose a state from \(held.lowerBound) to \(held.upperBound)"
        case .noSuchState(let number, nil):
            "state \(number) is not held, because the app has no states; use the app until it sends one"
        case .noSuchValue(let pointer, let state):
            "state \(state) has no value at \"\(pointer)\"; read the state without a pointer to see its members"
        case .noPicture(let state):
            "the app sent no picture with state \(state); choose another state"
        case .noPictures: "no held state has a picture; the app must send it as the member imageData"
        case .pictureDropped(let state):
            "the picture of state \(state) was dropped to save memory; choose a newer state"
        case .invalidPicture(let state):
            "the picture of state \(state) is not a PNG or JPEG file in base64; choose another state, or correct imageData "
                + "in the app"
        case .disconnected(let app):
            "app \(app) is not connected; start the app again, and choose a state of the new connection"
        case .differentShape(let difference, let fitting):
            "the state was not sent, because the app may end when it cannot decode it: \(difference); "
                + Self.choice(of: fitting)
        case .invalidState(let error):
            "the state was not used: \(error); choose another state"
        case .notTaken(let seconds):
            "the app did not read for \(seconds) s; continue it if it is stopped at a breakpoint, then try again"
        case .noPreviousLaunch:
            "no states of an earlier launch are held; read those of this launch"
        case .notApproved(let app):
            "app \(app) is not approved; approve its endpoint with `patchbay approve`"
        case .ownServer:
            "debuglink.forward leads to this broker's own state debugger; name another debugger"
        case .pictureTooLarge(let state, let bytes, let limit):
            "the picture of state \(state) has \(bytes) bytes, and the limit is \(limit) bytes; choose another state"
        case .invalidArgument(let name, let problem):
            "the argument \(SanitizedText(name)) \(problem)"
        }
    }

    private static func choice(of fitting: [Int]) -> String {
        fitting.isEmpty
            ? "no held state has the members of the app's last state"
            : "choose one of the states that fit: \(fitting.map(String.init).joined(separator: ", "))"
    }

    /// The value of the same four bytes in the other byte order.
    private static func swapped(_ length: Int) -> Int { Int(UInt32(truncatingIfNeeded: length).byteSwapped) }

    private static func hexadecimal(_ byte: UInt8) -> String {
        "0x\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16, uppercase: true))"
    }
}

import Glibc
import Synchronization

/// The lockdownd of a simulated phone: a server on loopback that answers QueryType and GetValue without pairing.
///
/// The messages are written without Patchbay's own implementation. Requests are searched and not parsed.
package final class LockdownServer: Sendable {
    /// The behaviour of lockdownd.
    package enum Mode: Sendable {
        case usual
        /// Refuses every value, like a phone that was not unlocked since its start.
        case locked
        /// Accepts connections and never answers.
        case silent
    }

    private struct State {
        var mode: Mode
        var values: [String: String]
        var answers = 0
    }

    private let state: Mutex<State>
    private let server = Mutex<LoopbackServer?>(nil)

    /// Starts lockdownd on a free port.
    package init(
        name: String,
        productType: String = "iPhone15,3",
        productVersion: String = "17.5",
        mode: Mode = .usual,
        in scratch: ScratchFolder
    ) throws {
        let values = ["DeviceName": name, "ProductType": productType, "ProductVersion": productVersion]
        state = Mutex(State(mode: mode, values: values))
        let listener = try LoopbackServer(in: scratch) { [self] in serve($0) }
        server.withLock { $0 = listener }
    }

    package var port: UInt16 { server.withLock { $0?.port ?? 0 } }
    /// The number of answered requests.
    package var answers: Int { state.withLock { $0.answers } }

    package func set(_ mode: Mode) { state.withLock { $0.mode = mode } }

    package func rename(to name: String) { state.withLock { $0.values["DeviceName"] = name } }

    /// Encodes a message: the length in four big-endian bytes and a property list with this content.
    package static func frame(_ inner: String) -> [UInt8] {
        let body = Array(MuxMessage.document(inner).utf8)
        return withUnsafeBytes(of: UInt32(body.count).bigEndian, Array.init) + body
    }

    /// Returns a reply to GetValue.
    package static func reply(_ key: String, value: String) -> [UInt8] {
        frame("<dict>\(pair("Request", "GetValue"))\(pair("Key", key))\(pair("Value", escaped(value)))</dict>")
    }

    /// Returns a reply to GetValue with an error.
    package static func reply(_ key: String, error: String) -> [UInt8] {
        frame("<dict>\(pair("Error", error))\(pair("Key", key))\(pair("Request", "GetValue"))</dict>")
    }

    private func serve(_ connection: CInt) {
        while let header = Self.receive(4, from: connection) {
            let length = header.reduce(0) { $0 << 8 | Int($1) }
            guard length <= 1 << 20, let body = Self.receive(length, from: connection) else { return }
            let (mode, values) = state.withLock { ($0.mode, $0.values) }
            if mode == .silent { continue }
            let reply = Self.answer(String(decoding: body, as: UTF8.self), values, isLocked: mode == .locked)
            guard BlockingStream.send(reply[...], to: connection) else { return }
            state.withLock { $0.answers += 1 }
        }
    }

    private static func answer(_ request: String, _ values: [String: String], isLocked: Bool) -> [UInt8] {
        guard request.contains("<string>GetValue</string>") else {
            return frame("<dict>\(pair("Request", "QueryType"))\(pair("Type", "com.apple.mobile.lockdown"))</dict>")
        }
        guard request.contains("<key>Key</key>") else {
            let all = values.sorted { $0.key < $1.key }.map { pair($0.key, escaped($0.value)) }.joined()
            return frame("<dict>\(pair("Request", "GetValue"))<key>Value</key><dict>\(all)</dict></dict>")
        }
        let known = values.first { request.contains("<string>\($0.key)</string>") }
        guard let known else { return reply("", error: "MissingValue") }
        return isLocked
            ? reply(known.key, error: "PasswordProtected") : reply(known.key, value: known.value)
    }

    private static func pair(_ key: String, _ value: String) -> String { "<key>\(key)</key><string>\(value)</string>" }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }

    private static func receive(_ count: Int, from connection: CInt) -> [UInt8]? {
        guard count > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: count)
        return recv(connection, &buffer, count, CInt(MSG_WAITALL)) == count ? buffer : nil
    }
}

@testable import Devices
import FoundationEssentials
import TestSupport

/// A result that the server sent, in either dialect.
struct MuxResult: Equatable {
    let code: UInt32
    let tag: UInt32
    let isBinary: Bool

    init(code: UInt32, tag: UInt32, isBinary: Bool) { (self.code, self.tag, self.isBinary) = (code, tag, isBinary) }

    /// Decodes the only message; nil when it is not a result.
    init?(_ bytes: [UInt8]) throws {
        let frames = try UsbmuxFrame.all(in: bytes)
        guard let frame = frames.first, frames.count == 1 else { return nil }
        if frame.header.kind == 1 {
            self.init(code: UsbmuxHeader.word(at: 0, of: frame.body), tag: frame.header.tag, isBinary: true)
            return
        }
        let list = try PropertyListDecoder().decode(Keys.self, from: Data(frame.body))
        guard list.messageType == "Result" else { return nil }
        self.init(code: list.number, tag: frame.header.tag, isBinary: false)
    }

    private struct Keys: Decodable {
        let messageType: String
        let number: UInt32

        private enum CodingKeys: String, CodingKey {
            case messageType = "MessageType"
            case number = "Number"
        }
    }
}

extension UsbmuxFrame {
    /// Decodes the messages in received bytes.
    static func all(in bytes: [UInt8]) throws -> [UsbmuxFrame] {
        var decoder = UsbmuxFrameDecoder(forRequests: true)
        decoder.append(bytes)
        var frames: [UsbmuxFrame] = []
        while let frame = try decoder.nextFrame() { frames.append(frame) }
        return frames
    }
}

extension MuxMessage {
    /// Encodes a Connect with any two values.
    static func connect(_ deviceID: String, _ port: String, tag: UInt32 = 1) -> [UInt8] {
        request("Connect", "<key>DeviceID</key>\(deviceID)<key>PortNumber</key>\(port)", tag: tag)
    }

    static func integer(_ number: Int) -> String { "<integer>\(number)</integer>" }
}

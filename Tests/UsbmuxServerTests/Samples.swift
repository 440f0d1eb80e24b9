import Devices
import FoundationEssentials
import Model

@testable import UsbmuxServer

/// Messages that clients send and receive.
enum Samples {
    static let one = "00008030-001A2B3C4D5E6F70"
    static let two = "0123456789abcdef0123456789abcdef01234567"

    static func device(_ udid: String, _ transport: Device.Transport = .usb, since seconds: Double = 0) throws -> Device
    {
        guard let udid = UDID(udid) else { throw CancellationError() }
        let isCable = transport == .usb
        return Device(
            udid: udid,
            transport: transport,
            productID: isCable ? 0x12A8 : nil,
            locationID: isCable ? 65_537 : nil,
            attachedAt: Date(timeIntervalSince1970: seconds)
        )
    }

    /// Encodes a request as libusbmuxd does.
    static func request(_ type: String, _ rest: String = "", tag: UInt32 = 7) -> [UInt8] {
        propertyList("<dict><key>MessageType</key><string>\(type)</string>\(rest)</dict>", tag: tag)
    }

    static func connect(_ deviceID: String, _ port: String, tag: UInt32 = 7) -> [UInt8] {
        request("Connect", "<key>DeviceID</key>\(deviceID)<key>PortNumber</key>\(port)", tag: tag)
    }

    static func integer(_ number: Int) -> String { "<integer>\(number)</integer>" }

    static func propertyList(_ inner: String, tag: UInt32 = 7) -> [UInt8] {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">\(inner)</plist>
            """
        return frame(Array(text.utf8), version: 1, kind: 8, tag: tag)
    }

    static func frame(_ body: [UInt8], version: UInt32, kind: UInt32, tag: UInt32 = 7) -> [UInt8] {
        let length = UInt32(UsbmuxHeader.size + body.count)
        return UsbmuxHeader(length: length, version: version, kind: kind, tag: tag).encoded + body
    }

    /// Decodes the messages in received bytes.
    static func frames(_ bytes: [UInt8]) throws -> [UsbmuxFrame] {
        var decoder = UsbmuxFrameDecoder(from: .client)
        decoder.append(bytes)
        var frames: [UsbmuxFrame] = []
        while let frame = try decoder.nextFrame() { frames.append(frame) }
        return frames
    }

    /// Decodes the only message, in either dialect; nil when it is not a result.
    static func result(_ bytes: [UInt8]) throws -> Result? {
        let frames = try frames(bytes)
        guard let frame = frames.first, frames.count == 1 else { return nil }
        if frame.header.kind == 1 {
            return Result(code: UsbmuxHeader.word(at: 0, of: frame.body), tag: frame.header.tag, isBinary: true)
        }
        let list = try PropertyListDecoder().decode(ResultKeys.self, from: Data(frame.body))
        guard list.messageType == "Result" else { return nil }
        return Result(code: list.number, tag: frame.header.tag, isBinary: false)
    }

    struct Result: Equatable {
        let code: UInt32
        let tag: UInt32
        let isBinary: Bool
    }

    private struct ResultKeys: Decodable {
        let messageType: String
        let number: UInt32

        private enum CodingKeys: String, CodingKey {
            case messageType = "MessageType"
            case number = "Number"
        }
    }
}

import CLinux
import Foundation
import Glibc
import TestSupport
import SystemIO

@testable import Devices

/// A blocking usbmuxd client that sends valid or invalid bytes; each reply has a timeout of 10 s.
final class MuxPeer: Sendable {
    private let socket: Descriptor

    /// Connects like libusbmuxd: non-blocking, so that a full backlog is an error.
    init(to path: String) throws {
        let number = Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        socket = Descriptor(owning: number)
        CLinux_set_nonblocking(number)
        let status = try SocketAddress.unix(path: path).withRaw { Glibc.connect(number, $0, $1) }
        guard status == 0 else { throw TestSupportError(call: "connect to \(path)") }
        Self.setBlocking(number)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    private static func setBlocking(_ number: CInt) {
        var off: CInt = 0
        _ = ioctl(number, UInt(FIONBIO), &off)
    }

    func send(_ bytes: [UInt8]) throws {
        guard TestSupport.Stream.send(bytes[...], to: socket.number) else { throw TestSupportError(call: "send") }
    }

    /// Half-closes the connection.
    func finish() { shutdown(socket.number, CInt(SHUT_WR)) }

    /// Receives exactly `count` bytes, or fewer at the end of the stream.
    func receive(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: min(65_536, count - bytes.count))
            let got = recv(socket.number, &buffer, buffer.count, 0)
            if got < 0, errno == ECONNRESET { break }
            guard got >= 0 else { throw TestSupportError(call: "recv, after \(bytes.count) of \(count) bytes") }
            if got == 0 { break }
            bytes += buffer[..<got]
        }
        return bytes
    }

    /// Receives the next message, or nil if the other side closed.
    func frame() throws -> UsbmuxFrame? {
        let head = try receive(UsbmuxHeader.size)
        guard head.count == UsbmuxHeader.size else { return nil }
        let header = UsbmuxHeader(of: head)
        return UsbmuxFrame(header: header, body: try receive(Int(header.length) - UsbmuxHeader.size))
    }

    /// Receives the next message as a property list.
    func list() throws -> NSDictionary {
        guard let frame = try frame() else { throw TestSupportError("usbmuxd, or its facade, hung up") }
        return try Self.list(frame.body)
    }

    static func list(_ body: [UInt8]) throws -> NSDictionary {
        guard let list = try PropertyListSerialization.propertyList(from: Data(body), format: nil) as? NSDictionary
        else {
            throw TestSupportError("a property list that is no dictionary")
        }
        return list
    }

    func ask(_ type: String, _ rest: String = "", tag: UInt32 = 1) throws -> NSDictionary {
        try send(Self.request(type, rest, tag: tag))
        return try list()
    }

    /// Returns the DeviceIDs by UDID.
    func devices() throws -> [String: UInt32] {
        let records = try ask("ListDevices")["DeviceList"] as? [NSDictionary] ?? []
        return Dictionary(
            uniqueKeysWithValues: records.compactMap { record in
                let properties = record["Properties"] as? NSDictionary
                guard let udid = properties?["SerialNumber"] as? String, let id = record["DeviceID"] as? Int else {
                    return nil
                }
                return (udid, UInt32(id))
            }
        )
    }

    /// Sends Connect and returns the result code; after 0 the connection is the stream.
    func dial(_ deviceID: UInt32, _ port: UInt16) throws -> Int? {
        try send(Self.connect(deviceID, port))
        return try list()["Number"] as? Int
    }

    static func connect(_ deviceID: UInt32, _ port: UInt16, tag: UInt32 = 1) -> [UInt8] {
        request(
            "Connect",
            """
            <key>DeviceID</key><integer>\(deviceID)</integer>
            <key>PortNumber</key><integer>\(port.bigEndian)</integer>
            """,
            tag: tag
        )
    }

    static func request(_ type: String, _ rest: String = "", tag: UInt32 = 1) -> [UInt8] {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict><key>MessageType</key><string>\(type)</string>
            <key>ProgName</key><string>peer</string><key>kLibUSBMuxVersion</key><integer>3</integer>\(rest)</dict></plist>
            """
        return frame(Array(text.utf8), version: 1, kind: 8, tag: tag)
    }

    static func frame(_ body: [UInt8] = [], version: UInt32, kind: UInt32, tag: UInt32 = 1) -> [UInt8] {
        let length = UInt32(UsbmuxHeader.size + body.count)
        return UsbmuxHeader(length: length, version: version, kind: kind, tag: tag).encoded + body
    }
}

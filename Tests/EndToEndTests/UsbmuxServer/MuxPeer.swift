import Foundation
import SystemIO
import TestSupport

@testable import Devices

/// A blocking usbmuxd client that sends valid or invalid bytes; each reply has a timeout of 10 s.
final class MuxPeer: Sendable {
    private let stream: BlockingStream

    /// Connects like libusbmuxd: non-blocking, so that a full backlog is an error.
    init(to path: String) throws {
        stream = try BlockingStream.connect(to: .unix(path: path), waits: false)
        stream.limit(.seconds(10))
    }

    func send(_ bytes: [UInt8]) throws { try stream.send(bytes) }

    /// Half-closes the connection.
    func finish() { stream.finish() }

    /// Receives exactly `count` bytes, or fewer at the end of the stream.
    func receive(_ count: Int) throws -> [UInt8] { try stream.receive(upTo: count) }

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
        request("Connect", MuxMessage.connectKeys(deviceID, port), tag: tag)
    }

    static func request(_ type: String, _ rest: String = "", tag: UInt32 = 1) -> [UInt8] {
        let client = "<key>ProgName</key><string>peer</string><key>kLibUSBMuxVersion</key><integer>3</integer>"
        return MuxMessage.request(type, client + rest, tag: tag)
    }
}

import FoundationEssentials
package import Model

/// Answers the requests that the server does not answer itself, such as those for pair records.
package protocol UsbmuxForwarder: Sendable {
    /// Forwards a client's property list.
    ///
    /// - Parameters:
    ///   - propertyList: The unchanged property list.
    ///   - request: The MessageType of the request.
    /// - Returns: The reply.
    /// - Throws: Any error if there is no reply; `CancellationError`.
    func forward(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body
}

extension NativeUsbmuxClient: UsbmuxForwarder {}

/// Forwards the requests for the host's BUID and for the pair record of one phone to the usbmuxd of this machine.
///
/// A pair record is a secret of the host that is paired with the phone. So no request leaves this machine. The process
/// connects to usbmuxd with the rights of its user, so its clients get only what they can read without it.
package struct PairRecordForwarder: UsbmuxForwarder {
    private let udid: UDID
    private let usbmuxd: (any UsbmuxForwarder)?

    /// - Parameters:
    ///   - udid: The phone.
    ///   - usbmuxd: The usbmuxd of this machine; nil if there is none.
    package init(of udid: UDID, usbmuxd: (any UsbmuxForwarder)?) {
        self.udid = udid
        self.usbmuxd = usbmuxd
    }

    package func forward(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body {
        switch request {
        case "ReadBUID": break
        case "ReadPairRecord", "SavePairRecord", "DeletePairRecord":
            // The answer of usbmuxd for a missing record (ENOENT).
            guard Self.recordID(in: propertyList) == udid else { return .result(.badDevice) }
        default: return .result(.badCommand)
        }
        // A client that reads "missing" would pair with the phone, and could not save the new record.
        guard let usbmuxd else { return .result(.refused) }
        return try await usbmuxd.forward(propertyList, for: request)
    }

    /// Returns the phone of the record that a request names.
    private static func recordID(in propertyList: [UInt8]) -> UDID? {
        let request = try? PropertyListDecoder().decode(PairRecordRequest.self, from: Data(propertyList))
        return request.flatMap { UDID($0.recordID) }
    }
}

/// The key that names the record in the requests for pair records.
private struct PairRecordRequest: Decodable {
    let recordID: String

    private enum CodingKeys: String, CodingKey {
        case recordID = "PairRecordID"
    }
}

package import Model
package import SystemIO

/// Knows the Android phones that can be reached.
package protocol ADBTransportSource: Sendable {
    /// Returns the transport by which a phone can be reached now.
    ///
    /// - Throws: `DialError` with the reason `deviceAbsent`, also if there is no adb server.
    func transport(of udid: UDID) async throws(DialError) -> ADBTransport

    /// Returns whether something listens on a socket of a phone, without a connection to it; nil if that is unknown.
    func isListening(_ socket: DeviceSocket, of udid: UDID) async -> Bool?
}

extension ADBTransportSource {
    package func isListening(_ socket: DeviceSocket, of udid: UDID) async -> Bool? { nil }
}

/// An attachment of a phone to an adb server, whose `ro.serialno` was read since the phone became ready.
package struct ADBTransport: Sendable {
    let id: ADBTransportID
    /// The address of the adb server.
    let server: SocketAddress
    /// The name of the phone for people, such as "Pixel 8".
    let name: SanitizedText
    let limitKey: ConnectLimitKey
    /// False if the phone may have left the transport since its serial was read. Called on the connector's thread after
    /// the server opened a stream, so a true result means that the stream leads to this phone.
    let isCurrent: @Sendable () -> Bool
    /// Tells at the end of a stream if the phone is still ready.
    let linkCheck: LinkCheck

    /// - Parameters:
    ///   - id: The number of the attachment.
    ///   - server: The address of the adb server.
    ///   - run: The run of the server, whose connects in flight are limited.
    ///   - name: The name of the phone for people.
    ///   - isCurrent: False if the phone may have left the transport.
    ///   - linkCheck: Tells at the end of a stream if the phone is still ready.
    package init(
        _ id: ADBTransportID,
        at server: SocketAddress,
        of run: AnyObject,
        name: SanitizedText,
        isCurrent: @escaping @Sendable () -> Bool,
        linkCheck: @escaping LinkCheck
    ) {
        (self.id, self.server, self.name) = (id, server, name)
        (self.isCurrent, self.linkCheck) = (isCurrent, linkCheck)
        limitKey = ConnectLimitKey(server: run, device: UInt32(truncatingIfNeeded: id.number))
    }
}

/// One message as it travels: a header and what follows it, not looked at yet.
package struct UsbmuxFrame: Hashable, Sendable {
    package let header: UsbmuxHeader
    package let body: [UInt8]

    package init(header: UsbmuxHeader, body: [UInt8]) {
        self.header = header
        self.body = body
    }
}

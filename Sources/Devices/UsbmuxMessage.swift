/// One message of usbmuxd's protocol: a header of four little-endian words and what follows it.
package struct UsbmuxMessage: Hashable, Sendable {
    package enum Body: Hashable, Sendable {
        /// Version 1: an XML property list, not looked at yet.
        case propertyList([UInt8])
        /// Version 0: how usbmuxd refuses a version that it does not speak, whatever the version was.
        case result(UsbmuxResult)
    }

    /// Of a reply, that of its request; 0 for what usbmuxd says unasked.
    package let tag: UInt32
    package let body: Body

    package init(tag: UInt32, body: Body) {
        self.tag = tag
        self.body = body
    }

    package var encoded: [UInt8] {
        switch body {
        case .propertyList(let bytes):
            let length = UInt32(UsbmuxHeader.size + bytes.count)
            return UsbmuxHeader(length: length, version: 1, kind: 8, tag: tag).encoded + bytes
        case .result(let result):
            let header = UsbmuxHeader(length: UsbmuxHeader.resultLength, version: 0, kind: 1, tag: tag)
            return header.encoded + UsbmuxHeader.bytes(of: result.code)
        }
    }
}

import FoundationEssentials
import Model

@testable import Devices

/// Promises for usbmuxd messages: the result does not depend on how bytes are split, and parsing ends at the first
/// invalid message.
enum UsbmuxPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try decode(input)
        try reply(UsbmuxMessage(tag: 1, body: .propertyList(input)))

        var choices = Choices(input)
        var stream: [UInt8] = []
        for _ in 0..<choices.number(below: 4) {
            stream += UsbmuxMessage(tag: UInt32(choices.byte()), body: .propertyList(choices.run())).encoded
            stream += UsbmuxMessage(tag: 0, body: .result(UsbmuxResult(code: UInt32(choices.byte())))).encoded
        }
        try decode(stream + choices.remainder())

        choices = Choices(input)
        try attached(&choices)
    }

    /// Returns all messages and the reason for the end.
    private static func messages(
        _ decoder: inout UsbmuxFrameDecoder
    ) -> (messages: [UsbmuxMessage], error: UsbmuxError?) {
        var messages: [UsbmuxMessage] = []
        do throws(UsbmuxError) {
            while let message = try decoder.next() { messages.append(message) }
            return (messages, nil)
        } catch { return (messages, error) }
    }

    private static func decode(_ stream: [UInt8]) throws(Violation) {
        var whole = UsbmuxFrameDecoder()
        whole.append(stream)
        let (expected, end) = messages(&whole)
        let written = expected.flatMap(\.encoded)
        try promise("a message is what came", stream.starts(with: written))
        for message in expected { try reply(message) }

        var split = UsbmuxFrameDecoder()
        var received: [UsbmuxMessage] = []
        var error: UsbmuxError?
        var rest = stream[...]
        var step = stream.count % 7 + 1
        while !rest.isEmpty, error == nil {
            split.append(rest.prefix(step))
            rest = rest.dropFirst(step)
            step = step % 23 + 1
            let (messages, end) = messages(&split)
            received += messages
            error = end
        }
        try promise("how the bytes are split changes nothing", received == expected && error == end)
        guard error != nil else {
            try promise(
                "what is missing is at least a byte, and no more than is believed",
                (1...1 << 20).contains(split.bytesNeeded)
            )
            return
        }
        split.append(UsbmuxMessage(tag: 0, body: .result(.ok)).encoded)
        let (more, last) = messages(&split)
        try promise("nothing comes after a false message", more.isEmpty && last == error)
    }

    private static func reply(_ message: UsbmuxMessage) throws(Violation) {
        let records: [UsbmuxDeviceRecord]
        do throws(UsbmuxError) {
            switch try UsbmuxReply(message) {
            case .devices(let list): records = list
            case .attached(let record): records = [record]
            case .result, .detached, .paired, .pairRecord, .other: records = []
            }
        } catch {
            guard case .malformedMessage = error else {
                throw Violation(promise: "what is no answer is called garbled")
            }
            return
        }
        try promise("no phone has the number 0", records.allSatisfy { $0.deviceID != 0 })
        try promise("a phone is known by its UDID", records.allSatisfy { UDID($0.udid.text) == $0.udid })
    }

    /// A reported phone is decoded with the same properties.
    private static func attached(_ choices: inout Choices) throws(Violation) {
        let digits = choices.letters(choices.one(of: [24, 40]), of: Array("0123456789abcdefABCDEF".utf8))
        let number = UInt32(choices.number(below: 65_536))
        let product = choices.number(below: 65_536)
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict><key>MessageType</key><string>Attached</string>
            <key>DeviceID</key><integer>\(number)</integer><key>Properties</key><dict>
            <key>ConnectionType</key><string>USB</string><key>ProductID</key><integer>\(product)</integer>
            <key>SerialNumber</key><string>\(digits)</string></dict></dict></plist>
            """
        var bytes = Array(text.utf8)
        let answer = try? UsbmuxReply(UsbmuxMessage(tag: 0, body: .propertyList(bytes)))
        if number == 0 {
            try promise("a phone without a number changes nothing", answer == .other("Attached"))
        } else {
            guard case .attached(let record) = answer else { throw Violation(promise: "a phone is seen") }
            let isSame = record.deviceID == number && record.udid == UDID(digits) && record.productID == product
            try promise("a phone is seen as it was told", isSame)
        }
        for _ in 0..<choices.number(below: 4) { choices.edit(&bytes) }
        try reply(UsbmuxMessage(tag: 0, body: .propertyList(bytes)))
    }
}

import Model

@testable import Devices

/// Promises for the answers of an adb server: the result does not depend on how bytes are split, no byte after an
/// answer is asked for, and a damaged line of a list costs only itself.
enum ADBPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try texts(input)
        try answer(input)
        try list(input)
    }

    private static func all(_ decoder: inout ADBTextDecoder) -> (texts: [[UInt8]], error: ADBError?) {
        var texts: [[UInt8]] = []
        do throws(ADBError) {
            while let text = try decoder.next() { texts.append(text) }
            return (texts, nil)
        } catch { return (texts, error) }
    }

    private static func texts(_ input: [UInt8]) throws(Violation) {
        var whole = ADBTextDecoder()
        whole.append(input)
        let (expected, end) = all(&whole)

        var split = ADBTextDecoder()
        var received: [[UInt8]] = []
        var error: ADBError?
        for byte in input {
            split.append([byte])
            let (texts, end) = all(&split)
            received += texts
            error = error ?? end
        }
        try promise("how the bytes are split changes nothing", received == expected && error == end)
        try promise("no more is asked for than a text has", (1...0xFFFF + 4).contains(split.bytesNeeded))
    }

    private static func answer(_ input: [UInt8]) throws(Violation) {
        var decoder = ADBAnswerDecoder()
        var rest = input[...]
        while true {
            let answer: ADBAnswerDecoder.Answer?
            do throws(ADBError) { answer = try decoder.next() } catch { return }
            if let answer {
                let read = input.count - rest.count
                try promise("OKAY has four bytes", (answer == .okay) == (read == 4 && input.starts(with: "OKAY".utf8)))
                return
            }
            guard !rest.isEmpty else { return }
            let count = min(decoder.bytesNeeded, rest.count)
            try promise("at least a byte is asked for", count > 0)
            decoder.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
    }

    private static func list(_ input: [UInt8]) throws(Violation) {
        let records = ADBDeviceRecord.list(input)
        try promise("a list is bounded", records.count <= ADBDeviceRecord.limit)
        try promise("a transport is listed once", Set(records.map(\.transportID)).count == records.count)
        try promise("no transport has the number 0", records.allSatisfy { $0.transportID.number > 0 })
        try promise("a serial can be shown", records.allSatisfy { !$0.serial.isEmpty })
        guard records.count < ADBDeviceRecord.limit else { return }
        let line = Array("\nR58M device usb:1-2 model:Pixel_8 transport_id:18446744073709551615".utf8)
        let longer = ADBDeviceRecord.list(input + line)
        try promise(
            "a damaged line costs only itself",
            longer.starts(with: records) && longer.contains { $0.transportID.number == .max }
        )
    }
}

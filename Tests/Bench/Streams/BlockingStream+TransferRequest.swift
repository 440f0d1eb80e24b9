import TestSupport

private let chunk = 256 << 10

extension BlockingStream {
    /// Sends the bytes of a transfer request.
    func give(_ request: TransferRequest) throws {
        var block = [UInt8](repeating: 0, count: chunk)
        var sent = 0
        while sent < request.length {
            let count = min(chunk, request.length - sent)
            if request.isPattern { block = Pattern.bytes(sent..<sent + count) }
            try block.withUnsafeBytes { try send(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            sent += count
        }
    }

    /// Receives the bytes of a transfer request.
    ///
    /// - Returns: False if the bytes differ from the requested pattern.
    func take(_ request: TransferRequest) throws -> Bool {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 4_096)
        defer { space.deallocate() }
        var received = 0
        var isRight = true
        while received < request.length {
            let room = UnsafeMutableRawBufferPointer(rebasing: space[..<min(chunk, request.length - received)])
            let count = try receive(into: room)
            if request.isPattern, !Pattern.matches(room[..<count], from: received) { isRight = false }
            received += count
        }
        return isRight
    }
}

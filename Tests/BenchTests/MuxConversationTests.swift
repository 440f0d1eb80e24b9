import TestSupport
import Testing

@testable import bench

@Suite struct MuxConversationTests {
    private let apps: [UInt16: App] = [9_876: .echo]

    @Test func `a fragmented Connect opens the app at its port when complete`() {
        var conversation = MuxConversation(udid: Phone.udid, apps: apps)
        let request = MuxMessage.connect(1, 9_876)

        conversation.append(request.dropLast())
        #expect(conversation.next() == .wait)
        conversation.append(request.suffix(1))
        #expect(conversation.next() == .open(.echo, answer: MuxMessage.result(0, tag: 1)))
    }

    @Test func `a port without an app is refused, and the session continues`() {
        var conversation = MuxConversation(udid: Phone.udid, apps: apps)

        conversation.append((MuxMessage.connect(1, 1) + MuxMessage.connect(1, 9_876))[...])
        #expect(conversation.next() == .answer(MuxMessage.result(3, tag: 1)))
        #expect(conversation.next() == .open(.echo, answer: MuxMessage.result(0, tag: 1)))
    }

    @Test func `a transfer request is decoded as encoded`() {
        let request = TransferRequest(length: 123_456_789_012, isPattern: true)

        #expect(TransferRequest(request.bytes) == request)
        #expect(TransferRequest([1, 2, 3]) == nil)
    }
}

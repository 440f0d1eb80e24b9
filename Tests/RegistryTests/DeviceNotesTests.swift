import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Registry

@Suite(.scratchFolder) struct DeviceNotesTests {
    private let scratch = ScratchFolder.current
    private static let phone: UDID = "00008030-000D9C2E0C41802E"
    private static let note = DeviceNote(label: SanitizedText("drawer 3"), note: SanitizedText("cracked screen"))

    private func notes(for devices: AttachedDevices) async throws -> DeviceNotes {
        try await DeviceNotes(file: StateFile("device-notes", in: scratch.path, logger: .quiet), devices: devices)
    }

    @Test func `a note is in the list, before and after the phone is attached, and after a restart`() async throws {
        let device = Device(udid: Self.phone, transport: .usb, attachedAt: Date(timeIntervalSince1970: 1))
        let devices = AttachedDevices()
        let notes = try await notes(for: devices)
        await devices.set([device])
        var lists = await devices.deviceLists().makeAsyncIterator()
        #expect(await lists.next()?.first?.label == nil)
        try await notes.set(Self.note, of: Self.phone)
        #expect(await lists.next()?.first?.label?.text == "drawer 3")
        await devices.set([])
        await devices.set([device])
        #expect(await devices.devices().first?.note?.text == "cracked screen")

        let later = AttachedDevices()
        let restored = try await self.notes(for: later)
        await later.set([device])
        #expect(await later.devices().first?.label?.text == "drawer 3")
        try await restored.set(DeviceNote(label: SanitizedText(""), note: nil), of: Self.phone)
        #expect(await later.devices() == [device])
        #expect(await restored.note(of: Self.phone) == nil)
    }

    @Test func `a note that is too long is refused`() async throws {
        let notes = try await notes(for: AttachedDevices())
        let long = SanitizedText(String(repeating: "x", count: 61), limit: .max)
        await #expect(throws: Problem.self) { try await notes.set(DeviceNote(label: long), of: Self.phone) }
        // One character of many scalars.
        let stacked = SanitizedText("a" + String(repeating: "\u{301}", count: 5_000), limit: .max)
        await #expect(throws: Problem.self) { try await notes.set(DeviceNote(note: stacked), of: Self.phone) }
        try await notes.set(
            DeviceNote(note: SanitizedText(String(repeating: "ü", count: 500), limit: .max)),
            of: Self.phone
        )
    }

    @Test func `the number of notes is bounded`() async throws {
        let notes = try await notes(for: AttachedDevices())
        for number in 0..<DeviceNotes.limit {
            let digits = String(number, radix: 16)
            let udid = try #require(UDID(String(repeating: "0", count: 40 - digits.count) + digits))
            try await notes.set(Self.note, of: udid)
        }
        await #expect(throws: Problem.self) { try await notes.set(Self.note, of: Self.phone) }
    }
}

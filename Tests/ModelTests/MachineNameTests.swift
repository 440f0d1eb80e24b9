import Model
import Testing

@Suite struct MachineNameTests {
    @Test(arguments: [
        (#"Anna\226\128\153s\032iPhone.local"#, "anna’s iphone"), ("iPhone-12.local.", "iphone-12"),
        (#"a\.b\\c.local"#, #"a.b\c"#), (#"\300x\25.local"#, "300x25"), ("plain", "plain"),
    ])
    func `a name is compared without escapes, case and domain`(announced: String, text: String) {
        #expect(MachineName(announced).text == text)
    }

    @Test(arguments: [
        ("Android_0a1b2c3d4e5f60718293a4b5c6d7e8f9.local", "android"), ("9c2f7e10-5b1d-4c3e-8f00-aabbccddeeff", ""),
    ])
    func `a random name has only its prefix in common with the next one`(name: String, prefix: String) {
        #expect(MachineName(name).isRandom)
        #expect(MachineName(name).stablePart == prefix)
    }

    @Test(arguments: [
        "Android.local", "esp32-a1b2c3.local", "DESKTOP-7A3K9Q1", "Android_12", "deadbeef", "", "_.local",
    ])
    func `another name is not random`(name: String) {
        #expect(!MachineName(name).isRandom)
        #expect(MachineName(name).stablePart == MachineName(name).text[...])
    }

    @Test(arguments: [
        ("mac", "mac-2"), ("mac-2", "mac-3"), ("canidae", "canidae5045"), ("mac", "mac-2521"), ("iphone", "iphone-12"),
        ("pixel-8", "pixel-8-2"),
    ])
    func `a responder makes the second name from the first after a conflict`(one: String, other: String) {
        #expect(MachineName(one).mayBeRenamed(from: MachineName(other)))
        #expect(MachineName(other).mayBeRenamed(from: MachineName(one)))
    }

    @Test(arguments: [
        ("iphone-12", "iphone-15"), ("pixel7", "pixel9"), ("mac", "mac-mini"), ("mac", "mac-1"), ("mac", "mac-02"),
        ("mac1", "mac12"), ("desktop-7a3k9q1", "desktop-9b2k1c4"), ("", "mac"), ("mac", "mac-123456"),
        ("mac", "android_0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
    ])
    func `no responder makes one of the two names from the other`(one: String, other: String) {
        #expect(!MachineName(one).mayBeRenamed(from: MachineName(other)))
        #expect(!MachineName(other).mayBeRenamed(from: MachineName(one)))
    }

    @Test(arguments: [
        ("AppReveal-x (2)", "AppReveal-x"), ("Lab #12", "Lab"), ("Lab (a)", "Lab (a)"), ("Lab 2", "Lab 2"),
        ("Lab", "Lab"),
    ])
    func `the suffix of a renamed instance is recognised`(name: String, plain: String) {
        #expect(BonjourInstance.withoutConflictSuffix(name) == plain)
    }
}

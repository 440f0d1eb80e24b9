import Model
import TestSupport
import Testing

/// A real Chromium with a DevTools server, and Playwright as its client.
struct Browser {
    let port: UInt16
    let program: Program

    /// Starts Chromium with a blank page. Root needs `--no-sandbox`. The port 0 selects a free one.
    init(port: UInt16 = 0, named name: String = "chromium", in scratch: ScratchFolder) async throws {
        program = try await Program(
            "chromium-headless-shell",
            [
                "--no-sandbox", "--disable-gpu", "--user-data-dir=\(try scratch.makeFolder(name))",
                "--remote-debugging-port=\(port)", "about:blank",
            ],
            in: scratch
        )
        let line = try await program.waitForLine("DevTools listening on ws://127.0.0.1:")
        let digits = line.split(separator: ":").last?.prefix { $0.isNumber }
        self.port = try #require(digits.flatMap { UInt16($0) })
    }

    /// Connects Playwright to a DevTools server, sets the title of its page by a click, and returns the title.
    static func drive(_ url: String, title: String, in scratch: ScratchFolder) async throws -> String? {
        let script = """
            import sys
            from playwright.sync_api import sync_playwright
            with sync_playwright() as playwright:
                browser = playwright.chromium.connect_over_cdp(sys.argv[1])
                page = browser.contexts[0].pages[0]
                page.goto("data:text/html,<button onclick='document.title = this.id' id=" + sys.argv[2] + ">Name</button>")
                page.click("button")
                print(page.title())
                browser.close()
            """
        let python = try await PythonPeers.playwright(in: scratch)
        return try await Program.run(python, ["-c", script, url, title], in: scratch, within: .seconds(60)).last
    }
}

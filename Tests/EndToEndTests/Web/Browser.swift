import Glibc
import Model
import SystemIO
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

    /// Connects pyppeteer to a DevTools server by its URL, as `chrome-devtools-mcp --browserUrl` connects Puppeteer: it
    /// asks for `/json/version`, and uses the WebSocket named there. Sets the title as `drive` does.
    static func driveWithPuppeteer(_ url: String, title: String, in scratch: ScratchFolder) async throws -> String? {
        let script = """
            import asyncio, sys, pyppeteer
            async def main():
                browser = await pyppeteer.connect(browserURL=sys.argv[1])
                page = (await browser.pages())[0]
                await page.goto("data:text/html,<button onclick='document.title = this.id' id=" + sys.argv[2] + ">Name</button>")
                await page.click("button")
                print(await page.title())
                await browser.disconnect()
            asyncio.run(main())
            """
        let python = try await PythonPeers.puppeteer(in: scratch)
        return try await Program.run(python, ["-c", script, url, title], in: scratch, within: .seconds(60)).last
    }

    /// Sends what chrome://inspect sends (`HttpRequest` in Chromium's android_device_manager.cc), and returns the answer up
    /// to the end of the body that its length names.
    static func inspect(_ path: String, _ headers: String..., port: UInt16) async throws -> String {
        let stream = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
        let head = (["GET \(path) HTTP/1.1"] + headers + ["", ""]).joined(separator: "\r\n")
        try await stream.send(Array(head.utf8))
        var answer = ""
        while true {
            let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
            let length = parts[0].split(separator: "Content-Length:").dropFirst().first
            let count = length.flatMap { Int($0.drop { $0 == " " }.prefix { $0.isNumber }) } ?? 0
            if parts.count == 2, parts[1].utf8.count >= count { return answer }
            let more = try await stream.receiveSome()
            if more.isEmpty { return answer }
            answer += String(decoding: more, as: UTF8.self)
        }
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

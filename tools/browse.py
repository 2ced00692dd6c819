#!/usr/bin/env python3
"""Usage: tools/browse.py SITE [PICTURE]

Opens pages of the documentation site in headless Chromium, by its driver: none writes a message,
each has a heading, and the search finds what is there. PICTURE takes a screenshot of the first one.
"""

import functools
import http.server
import sys
import threading
import time

from selenium import webdriver
from selenium.webdriver.common.by import By

PAGES = ["index.html", "docs/performance.html", "reference.html", "rust/bellwire/index.html", "python/bellwire.html"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def started():
    """Chromium. Root may not use its sandbox; all pages are our own."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def messages(browser):
    """What pages wrote to the console; rustdoc's fonts are named in advance, and not all are drawn."""
    return [entry["message"] for entry in browser.get_log("browser") if "preload" not in entry["message"]]


def results(browser, address, words):
    """How many results the search shows: it runs beside the page, so this waits for its answer."""
    browser.get(f"{address}index.html?q={words}")
    for _ in range(600):
        told = browser.find_element(By.CSS_SELECTOR, ".md-search-result__meta").get_attribute("textContent")
        if "matching" in told or "No " in told:
            return len(browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item"))
        time.sleep(0.1)
    sys.exit(f"the search did not answer within a minute: {told.strip()}")


def check(condition, what):
    if not condition:
        sys.exit(f"in the browser: {what}")


def main(site, picture=None):
    # The index of the search is fetched, which browsers allow from a server only.
    handler = functools.partial(Quiet, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    browser = started()
    try:
        for page in PAGES:
            browser.get(address + page)
            check(browser.find_elements(By.TAG_NAME, "h1"), f"{page} has no heading")
            said = messages(browser)
            check(not said, f"{page} says {said}")
        browser.get(address + PAGES[0])
        picture_of = "document.querySelector('img[src$=\"performance.svg\"]')"
        check(browser.execute_script(f"return {picture_of}.naturalWidth"), "the picture is not drawn")
        if picture:
            browser.save_screenshot(picture)
        check(results(browser, address, "doorbell") > 0, "the search finds no doorbell")
        check(results(browser, address, "qzxqzxqzx") == 0, "the search finds what is not there")
        messages(browser)
        # What listens must hear.
        browser.execute_script("console.error('planted')")
        check(any("planted" in said for said in messages(browser)), "a planted message was not heard")
    finally:
        browser.quit()
    print(f"{len(PAGES)} pages opened, and searched")


main(*sys.argv[1:])

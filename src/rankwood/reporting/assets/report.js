document.getElementById("report").textContent = JSON.parse(document.getElementById("report-data").textContent).summary.join(" ");
